#include "import/fx/ops.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "import/fx/calls/conversions.hpp"

namespace pw::fx {
namespace {

struct Row {
  std::string_view target, op, parameters;
  Conversion* convert = nullptr;
  Special special = Special::none;
};

// Ops that an expression can define are in rules/import/*.pwr; these rows need code.
// A parameter list, in the order of the target's schema. Of `name`:
//   name:x        is the operand x            name:{k}     is the attribute k
//   name!0        is a buffer, written: left out; its contents are result 0 from here on
//   name!0{k}     … and its dtype is the attribute k
//   name:x!0      is the operand x, and is overwritten by result 0
//   name:none     must be None                name:-       does not matter
//   …=1           may be left out, and is 1 then        a|b  is called a or b
constexpr Row kRows[] = {
    // layout
    {"aten.view", "reshape", "self:x size:{shape}", convert_view},
    {"aten.reshape", "reshape", "self:x shape|size:{shape}", convert_view},
    {"aten.reshape_as", "reshape", "self:x other:-", convert_view},
    {"aten.view_as", "reshape", "self:x other:-", convert_view},
    {"aten.unflatten.int", "reshape", "self:x dim:- sizes:-", convert_unflatten},
    {"aten._unsafe_view", "reshape", "self:x size:{shape}", convert_view},
    {"aten.flatten.using_ints", "reshape", "self:x start_dim:-=0 end_dim:-=-1", convert_flatten},
    {"aten.ravel", "reshape", "self:x start_dim:-=0 end_dim:-=-1", convert_flatten},
    {"aten.unsqueeze", "reshape", "self:x dim:-", convert_unsqueeze},
    {"aten.squeeze.dim", "reshape", "self:x dim:-", convert_squeeze},
    {"aten.squeeze.dims", "reshape", "self:x dim:-", convert_squeeze},
    {"aten.squeeze", "reshape", "self:x dim:-=None", convert_squeeze},
    {"aten.t", "transpose", "self:x", convert_t},
    {"aten.numpy_T", "transpose", "self:x", convert_t},
    {"aten.mT", "transpose", "self:x", convert_t},
    {"aten.mH", "transpose", "self:x", convert_t},
    {"aten.adjoint", "transpose", "self:x", convert_t},
    {"aten.transpose.int", "transpose", "self:x dim0:{dim0} dim1:{dim1}"},
    {"aten.swapaxes", "transpose", "self:x axis0:{dim0} axis1:{dim1}"},
    {"aten.swapdims", "transpose", "self:x dim0:{dim0} dim1:{dim1}"},
    {"aten.permute", "transpose", "self:x dims:-", convert_permute},
    {"aten.slice.Tensor", "slice",
     "self:x dim:{dim}=0 start:{start}=None end:{end}=None step:{step}=1", convert_slice},
    {"aten.slice_scatter", "slice_scatter",
     "self:x src:src dim:{dim}=0 start:{start}=None end:{end}=None step:-=1", convert_slice},
    {"aten.select_scatter", "slice_scatter", "self:x src:src dim:- index:-",
     convert_select_scatter},
    {"aten.narrow", "slice", "self:x dim:- start:- length:-", convert_narrow},
    {"aten.select.int", "slice", "self:x dim:- index:-", convert_select},
    {"aten.split_with_sizes", "split", "self:x split_sizes:{sizes} dim:{dim}=0"},
    {"aten.split.sizes", "split", "self:x split_size:{sizes} dim:{dim}=0"},
    {"aten.split.Tensor", "split", "self:x split_size:- dim:{dim}=0", convert_split},
    {"aten.unsafe_split.Tensor", "split", "self:x split_size:- dim:{dim}=0", convert_split},
    {"aten.unsafe_split_with_sizes", "split", "self:x split_sizes:{sizes} dim:{dim}=0"},
    {"aten.unsafe_chunk", "split", "self:x chunks:- dim:{dim}=0", convert_split},
    {"aten.chunk", "split", "self:x chunks:- dim:{dim}=0", convert_split},
    {"aten.cat", "cat", "tensors:xs dim:{dim}=0", convert_cat},
    {"aten.stack", "cat", "tensors:xs dim:{dim}=0", convert_stack},
    {"aten.unbind.int", "split", "self:x dim:-=0", convert_unbind},
    {"aten.expand", "expand", "self:x size:{shape} implicit:-=False", convert_expand},
    {"aten.broadcast_to", "expand", "self:x size:{shape}", convert_expand},
    {"aten.expand_as", "expand", "self:x other:-", convert_expand},
    {"aten.movedim.int", "transpose", "self:x source:- destination:-", convert_movedim},
    {"aten.movedim.intlist", "transpose", "self:x source:- destination:-", convert_movedim},
    {"aten.moveaxis.int", "transpose", "self:x source:- destination:-", convert_movedim},
    {"aten.moveaxis.intlist", "transpose", "self:x source:- destination:-", convert_movedim},
    {"aten.broadcast_tensors", "expand", "tensors:-", convert_broadcast},
    {"aten.meshgrid", "expand", "tensors:- indexing:-='ij'", convert_meshgrid},
    {"aten.meshgrid.indexing", "expand", "tensors:- indexing:-", convert_meshgrid},
    {"aten.unfold", "index", "self:x dimension:- size:- step:-", convert_unfold},
    {"aten.as_strided", "index", "self:x size:- stride:- storage_offset:-=None", nullptr,
     Special::as_strided},
    {"prims.as_strided", "index", "a|self:x size:- stride:- storage_offset:-", nullptr,
     Special::as_strided},
    {"aten.diagonal_scatter", "index_put", "self:x src:- offset:-=0 dim1:-=0 dim2:-=1",
     convert_diagonal_scatter},
    {"prims.reshape", "reshape", "a|self:x shape|size:{shape}", convert_view},
    {"prims.squeeze", "reshape", "a|self:x dimensions|dim:-", convert_squeeze},
    {"prims.split_dim", "reshape", "a|self:x dim:- outer_length:-", convert_split_dim},
    {"prims.collapse", "reshape", "a|self:x start|start_dim:- end|end_dim:-", convert_flatten},
    {"prims.collapse_view", "reshape", "a|self:x start|start_dim:- end|end_dim:-", convert_flatten},
    {"prims.expand_dims", "reshape", "a|self:x dimensions:- ndim:none=None", convert_expand_dims},
    {"prims.broadcast_in_dim", "expand", "a|self:x shape:- broadcast_dimensions:-",
     convert_broadcast_in_dim},
    {"prims.transpose", "transpose", "a|self:x permutation|dims:-", convert_permute},
    {"prims.slice_in_dim", "slice",
     "a|self:x start_index|start:{start} limit_index|end:{end} stride|step:{step}=1 "
     "axis|dim:{dim}=0",
     convert_slice},
    {"prims.slice", "slice", "a|self:x start_indices:- limit_indices:- strides:-=None",
     convert_slices},
    {"prims.cat", "cat", "tensors:xs dim:{dim}", convert_cat},
    {"aten.detach", "detach", "self:x"},
    {"aten.alias", "detach", "self:x"},
    {"aten.dropout", "detach", "input:x p:- train:none=False"},
    {"aten.feature_dropout", "detach", "input:x p:- train:none=False"},
    {"aten.alpha_dropout", "detach", "input:x p:- train:none=False"},
    {"aten.lift", "detach", "self:x"},
    {"aten.lift_fresh", "detach", "self:x"},
    {"aten.positive", "detach", "self:x"},
    {"aten.lift_fresh_copy", "clone", "self:x"},
    {"aten.clone", "clone", "self:x memory_format:-=None"},
    {"aten.contiguous", "detach", "self:x memory_format:-=None"},
    {"aten.copy", "detach", "self:- src:x non_blocking:-=False", convert_copy},
    {"aten.fill.Scalar", "full", "self:x value|fill_value:{value} dtype:{dtype}=None",
     convert_make},
    {"aten.zero", "full", "self:x fill_value:{value}=0.0 dtype:{dtype}=None", convert_make},
    {"aten.sym_size.int", "", "self:x dim:-", nullptr, Special::size},
    // tensors from nothing
    {"aten.empty.memory_format", "empty",
     "size:{shape} dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None "
     "memory_format:-=None",
     convert_make},
    {"aten.empty_strided", "empty",
     "size:{shape} stride:- dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None",
     convert_make},
    {"aten.zeros", "full",
     "size:{shape} dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None "
     "fill_value:{value}=0.0",
     convert_make},
    {"aten.ones", "full",
     "size:{shape} dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None "
     "fill_value:{value}=1.0",
     convert_make},
    {"aten.full", "full",
     "size:{shape} fill_value:{value} dtype:{dtype}=None layout:-=None device:-=None "
     "pin_memory:-=None",
     convert_make},
    {"aten.new_full", "full",
     "self:x size:{shape} fill_value:{value} dtype:{dtype}=None layout:-=None device:-=None "
     "pin_memory:-=None",
     convert_make},
    {"aten.empty_like", "empty",
     "self:x dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None memory_format:-=None",
     convert_make},
    {"aten.zeros_like", "full",
     "self:x dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None memory_format:-=None "
     "fill_value:{value}=0.0",
     convert_make},
    {"aten.ones_like", "full",
     "self:x dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None memory_format:-=None "
     "fill_value:{value}=1.0",
     convert_make},
    {"aten.full_like", "full",
     "self:x fill_value:{value} dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None "
     "memory_format:-=None",
     convert_make},
    {"aten.scalar_tensor", "full",
     "s:{value} dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None", convert_scalar},
    {"prims.full", "full",
     "shape|size:{shape} fill_value:{value} dtype:{dtype}=None device:-=None requires_grad:-=None",
     convert_make},
    {"prims.full_like", "full",
     "a|self:x fill_value:{value} dtype:{dtype}=None device:-=None requires_grad:-=None",
     convert_make},
    {"prims.empty", "empty",
     "shape|size:{shape} dtype:{dtype}=None device:-=None requires_grad:-=None", convert_make},
    {"prims.empty_strided", "empty",
     "shape|size:{shape} strides:- dtype:{dtype}=None device:-=None requires_grad:-=None",
     convert_make},
    {"prims.empty_permuted", "empty",
     "shape|size:{shape} physical_layout:- dtype:{dtype}=None device:-=None requires_grad:-=None",
     convert_make},
    {"prims.scalar_tensor", "full", "s:{value} dtype:{dtype}=None device:-=None", convert_scalar},
    // casts and reductions
    {"aten._to_copy", "cast",
     "self:x dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None non_blocking:-=False "
     "memory_format:-=None",
     convert_to_copy},
    {"aten.to.dtype", "cast",
     "self:x dtype:{dtype} non_blocking:-=False copy:-=False memory_format:-=None",
     convert_to_copy},
    {"aten.to.dtype_layout", "cast",
     "self:x dtype:{dtype}=None layout:-=None device:-=None pin_memory:-=None non_blocking:-=False "
     "copy:none=False memory_format:-=None",
     convert_to_copy},
    {"aten.to.device", "cast",
     "self:x device:- dtype:{dtype} non_blocking:-=False copy:none=False memory_format:-=None",
     convert_to_copy},
    {"aten.type_as", "cast", "self:x other:-", convert_type_of},
    {"prims.convert_element_type", "cast", "a|self:x dtype:{dtype}", convert_to_copy},
    {"aten.mean.dim", "mean", "self:x dim:- keepdim:{keepdim}=False dtype:-=None", convert_reduce},
    {"aten.sum.dim_IntList", "sum", "self:x dim:- keepdim:{keepdim}=False dtype:-=None",
     convert_reduce},
    {"aten.amax", "amax", "self:x dim:-=None keepdim:{keepdim}=False", convert_reduce},
    {"aten.amin", "amin", "self:x dim:-=None keepdim:{keepdim}=False", convert_reduce},
    {"prims.sum", "sum", "inp|self:x dims|dim:- output_dtype|dtype:-=None", convert_reduce},
    {"prims.prod", "prod", "inp|self:x dims|dim:- output_dtype|dtype:-=None", convert_reduce},
    {"prims.amax", "amax", "inp|self:x dims|dim:- output_dtype|dtype:-=None", convert_reduce},
    {"prims.amin", "amin", "inp|self:x dims|dim:- output_dtype|dtype:-=None", convert_reduce},
    {"prims.var", "sum",
     "inp|self:x dims|dim:- correction:- output_dtype:none=None keepdim:-=False", convert_variance},
    {"aten.var_mean.correction", "mean", "self:x dim:-=None correction:-=None keepdim:-=False",
     convert_var_mean},
    {"aten.any.dims", "any", "self:x dim:-=None keepdim:{keepdim}=False", convert_any_of_axes},
    {"aten.var.dim", "sum", "self:x dim:- unbiased:-=True keepdim:-=False", convert_variance},
    {"aten.var", "sum", "self:x unbiased:-=True dim:-=None keepdim:-=False", convert_variance},
    {"aten.std", "sum", "self:x unbiased:-=True dim:-=None keepdim:-=False", convert_variance},
    {"aten.std.dim", "sum", "self:x dim:- unbiased:-=True keepdim:-=False", convert_variance},
    {"aten.std.correction", "sum", "self:x dim:-=None correction:-=None keepdim:-=False",
     convert_variance},
    {"aten.var.correction", "sum", "self:x dim:-=None correction:-=None keepdim:-=False",
     convert_variance},
    // elements by indices
    {"aten.arange", "iota", "end:- dtype:-=None layout:-=None device:-=None pin_memory:-=None",
     convert_arange},
    {"aten.arange.start", "iota",
     "start:- end:- dtype:-=None layout:-=None device:-=None pin_memory:-=None", convert_arange},
    {"aten.arange.start_step", "iota",
     "start:- end:- step:-=1 dtype:-=None layout:-=None device:-=None pin_memory:-=None",
     convert_arange},
    {"prims.iota", "iota",
     "length:- start:-=0 step:-=1 dtype:-=None device:-=None requires_grad:-=None", convert_iota},
    {"aten.einsum", "mm", "equation:- tensors:- path:-=None", convert_einsum},
    {"aten.tensordot", "mm", "self:- other:- dims_self:- dims_other:-", convert_tensordot},
    {"aten.linalg_vector_norm", "sqrt", "self:x ord:-=2 dim:-=None keepdim:-=False dtype:-=None",
     convert_vector_norm},
    {"aten.norm.Scalar", "sqrt", "self:x p|ord:-=2 dim:-=None keepdim:-=False dtype:-=None",
     convert_vector_norm},
    {"aten.norm.ScalarOpt_dtype", "sqrt", "self:x p|ord:- dtype:- dim:-=None keepdim:-=False",
     convert_vector_norm},
    {"aten.norm.ScalarOpt_dim", "sqrt", "self:x p|ord:- dim:- keepdim:-=False dtype:-=None",
     convert_vector_norm},
    {"aten.norm.ScalarOpt_dim_dtype", "sqrt", "self:x p|ord:- dim:- keepdim:-=False dtype:-=None",
     convert_vector_norm},
    {"aten.index.Tensor", "index", "self:x indices:-", convert_index},
    {"aten._unsafe_index.Tensor", "index", "self:x indices:-", convert_index},
    {"aten.index_put", "index_put", "self:x indices:- values:- accumulate:-=False",
     convert_index_put},
    {"aten._unsafe_index_put", "index_put", "self:x indices:- values:- accumulate:-=False",
     convert_index_put},
    {"aten.gather", "index", "self:x dim:- index:- sparse_grad:-=False", convert_gather},
    {"aten.scatter.src", "index_put", "self:x dim:- index:- src:-", convert_scatter},
    {"aten.scatter.value", "index_put", "self:x dim:- index:- value|src:-", convert_scatter},
    {"aten.scatter_add", "index_put", "self:x dim:- index:- src:-", convert_scatter},
    {"aten.scatter_reduce.two", "index_put",
     "self:x dim:- index:- src:- reduce:- include_self:-=True", convert_scatter},
    {"aten.flip", "index", "self:x dims:-", convert_flip},
    {"aten.fliplr", "index", "self:x dims:-=[1]", convert_flip},
    {"aten.flipud", "index", "self:x dims:-=[0]", convert_flip},
    {"aten.roll", "cat", "self:x shifts:- dims:-=[]", convert_roll},
    {"prims.rev", "index", "a|self:x dims:-", convert_flip},
    {"aten.conv1d", "convolution",
     "input:x weight:w bias:b=None stride:-=None padding:-=None dilation:-=None groups:-=1",
     convert_convolution},
    {"aten.conv2d", "convolution",
     "input:x weight:w bias:b=None stride:-=None padding:-=None dilation:-=None groups:-=1",
     convert_convolution},
    {"aten.conv3d", "convolution",
     "input:x weight:w bias:b=None stride:-=None padding:-=None dilation:-=None groups:-=1",
     convert_convolution},
    {"aten.conv1d.padding", "convolution",
     "input:x weight:w bias:b=None stride:-=1 padding:-='valid' dilation:-=1 groups:-=1",
     convert_convolution},
    {"aten.conv2d.padding", "convolution",
     "input:x weight:w bias:b=None stride:-=1 padding:-='valid' dilation:-=1 groups:-=1",
     convert_convolution},
    {"aten.conv3d.padding", "convolution",
     "input:x weight:w bias:b=None stride:-=1 padding:-='valid' dilation:-=1 groups:-=1",
     convert_convolution},
    {"aten.conv_transpose1d", "transposed_convolution",
     "input:x weight:w bias:b=None stride:-=1 padding:-=0 output_padding:-=0 groups:-=1 "
     "dilation:-=1",
     convert_conv_transpose},
    {"aten.conv_transpose2d.input", "transposed_convolution",
     "input:x weight:w bias:b=None stride:-=1 padding:-=0 output_padding:-=0 groups:-=1 "
     "dilation:-=1",
     convert_conv_transpose},
    {"aten.conv_transpose3d.input", "transposed_convolution",
     "input:x weight:w bias:b=None stride:-=1 padding:-=0 output_padding:-=0 groups:-=1 "
     "dilation:-=1",
     convert_conv_transpose},
    {"aten.matmul", "bmm", "self:a other:b", convert_matmul},
    {"aten.im2col", "index", "self:x kernel_size:- dilation:- padding:- stride:-", convert_im2col},
    {"aten.repeat", "expand", "self:x repeats:-", convert_repeat},
    {"aten.tile", "expand", "self:x dims|repeats:-", convert_repeat},
    {"aten.repeat_interleave.self_int", "expand", "self:x repeats:- dim:-=None output_size:-=None",
     convert_repeat_interleave},
    {"aten.pad", "cat", "self:x pad:- mode:-='constant' value:-=None", convert_pad},
    {"aten.constant_pad_nd", "cat", "self:x pad:- value:-=0", convert_pad},
    {"aten.reflection_pad1d", "cat", "self:x padding:-", convert_pad_edges},
    {"aten.reflection_pad2d", "cat", "self:x padding:-", convert_pad_edges},
    {"aten.reflection_pad3d", "cat", "self:x padding:-", convert_pad_edges},
    {"aten.replication_pad1d", "cat", "self:x padding:-", convert_pad_edges},
    {"aten.replication_pad2d", "cat", "self:x padding:-", convert_pad_edges},
    {"aten.replication_pad3d", "cat", "self:x padding:-", convert_pad_edges},
    {"aten.diagonal", "slice", "self:x offset:-=0 dim1:-=0 dim2:-=1", convert_diagonal},
    // vLLM's kernels
    {"vllm_ir.rms_norm", "rms_norm", "x|input:x weight:w epsilon:{eps} variance_size:none=None",
     convert_ir_norm},
    {"vllm_ir.fused_add_rms_norm", "fused_add_rms_norm",
     "x:x x_residual:res weight:w epsilon:{eps} variance_size:none=None", convert_ir_norm},
    {"vllm_ir.fused_add_rms_norm.maybe_inplace", "fused_add_rms_norm",
     "x:x x_residual:res weight:w epsilon:{eps} variance_size:none=None", convert_ir_norm},
    {"_C.rotary_embedding", "rotary_embedding",
     "positions:positions query:q!0 key:k!1 head_size:{head} cos_sin_cache:cos_sin is_neox:{neox} "
     "rope_dim_offset:none=0 inverse:none=False",
     convert_rotary},
    {"_C.fused_qk_norm_rope", "fused_qk_norm_rope",
     "qkv:qkv!0 num_heads_q:{heads_q} num_heads_k:{heads_k} num_heads_v:- head_dim:{head} "
     "eps:{eps} "
     "q_weight:qw k_weight:kw cos_sin_cache:cos_sin is_neox:{neox} position_ids:positions "
     "forced_token_heads_per_warp:-=-1"},
    {"_C.silu_and_mul_per_block_quant", "silu_and_mul_per_block_quant",
     "out|result!0 input:gu scales|scale!1 group_size:{group} scale_ub:none=None "
     "is_scale_transposed:{column_major}=False least:{least}=0.001953125"},
    {"_C.static_scaled_fp8_quant", "static_scaled_fp8_quant",
     "result|out!0 input:x scale:s group_shape:none=None"},
    {"_C.static_scaled_fp8_quant", "static_scaled_fp8_quant",
     "result|out!0 input:x scale:s group_shape:none=[-1,-1]"},
    {"_C.per_token_group_fp8_quant", "per_token_group_fp8_quant",
     "input:x output_q!0 output_s!1 group_size:{group} eps:{least} fp8_min:none=-448.0 "
     "fp8_max:none=448.0 scale_ue8m0:{ue8m0} "
     "dummy_is_scale_transposed:{column_major}=False dummy_is_tma_aligned:{tma_aligned}=False"},
    {"_C.rms_norm_per_block_quant", "rms_norm_per_block_quant",
     "result|out!0 input:x weight:w scale!1 epsilon:{eps} scale_ub:none=None residual:none=None "
     "group_size:{group} is_scale_transposed:{column_major}=False least:{least}=0.001953125"},
    {"_C.rms_norm_per_block_quant", "fused_add_rms_norm_per_block_quant",
     "result|out!0 input:x weight:w scale!1 epsilon:{eps} scale_ub:none=None residual:res!2 "
     "group_size:{group} is_scale_transposed:{column_major}=False least:{least}=0.001953125"},
    {"_C.cutlass_scaled_mm", "scaled_mm", "out!0 a:a b:b a_scales:sa b_scales:sb bias:none=None",
     convert_scaled_product},
    {"vllm.fp8_gemm_nt_op", "block_scaled_mm",
     "q_input:a input_scale:sa weight:b weight_scale:sb output!0 use_deep_gemm_e8m0:-",
     convert_scaled_product},
    {"_C.vocab_parallel_embedding", "vocab_parallel_embedding",
     "out!0 input_ids:ids weight:table org_vocab_start_index:{first} org_vocab_end_index:{last} "
     "num_org_vocab_padding:{padding} added_vocab_start_index:{added_first} "
     "added_vocab_end_index:{added_last}"},
    {"vllm.unified_attention_with_output", "unified_attention",
     "query:q key:k value:v output!0 layer_name:{layer} output_scale:scale=None "
     "output_block_scale:none=None kv_cache_dummy_dep:after=None",
     convert_attention},
    {"vllm.unified_attention", "unified_attention",
     "query:q key:k value:v layer_name:{layer} kv_cache_dummy_dep:after=None"},
    {"vllm.unified_kv_cache_update", "unified_kv_cache_update", "key:k value:v layer_name:{layer}"},
    {"vllm.unified_mla_attention_with_output", "unified_mla_attention",
     "q:q kv_c_normed:kv k_pe:pe output!0 layer_name:{layer} output_scale:scale=None "
     "output_block_scale:none=None kv_cache_dummy_dep:after=None quant_group_size:none=None "
     "quant_scale_ue8m0:none=None quant_col_major:none=None quant_tma_aligned:none=None "
     "q_dcp_replicated:none=None",
     convert_attention},
    {"vllm.unified_mla_kv_cache_update", "unified_mla_kv_cache_update",
     "kv_c_normed:kv k_pe:pe layer_name:{layer} kv_cache_dtype:{format} k_scale:scale"},
    {"vllm.moe_forward", "moe_forward",
     "hidden_states:x!1 router_logits:logits shared_experts_input:shared=None input_ids:ids=None "
     "layer_name:{layer} hidden_dim_unpadded:{unpadded}=0"},
    {"vllm.moe_forward_shared", "moe_forward_shared",
     "hidden_states:x router_logits:logits shared_experts_input:shared=None input_ids:ids=None "
     "layer_name:{layer} hidden_dim_unpadded:{unpadded}=0"},
    // collectives
    {"vllm.sequence_parallel_chunk_impl", "shard_padded", "x:x", nullptr, Special::shard_rows},
    {"_c10d_functional.wait_tensor", "detach", "self|tensor:x"},
};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(at), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Views in the library's ops, and yet memory of their own.
bool copies(std::string_view target) {
  return target == "aten.clone" || target == "aten.lift_fresh_copy" || target == "aten._to_copy" ||
         target == "aten.copy" || target == "aten.repeat" || target == "aten.constant_pad_nd" ||
         target == "aten.repeat_interleave.self_int" || target == "aten.pad" ||
         target == "aten.tile" || target == "aten.roll" || target == "aten.fliplr" ||
         target == "aten.flipud" || target == "aten.im2col" || target == "aten.flip" ||
         target == "prims.rev" || target == "prims.collapse" || target == "prims.reshape";
}

Slot read_slot(std::string_view text) {
  Slot p;
  if (std::size_t equals = text.find('='); equals != std::string_view::npos) {
    p.default_text = text.substr(equals + 1);
    text = text.substr(0, equals);
  }
  if (std::size_t bang = text.find('!'); bang != std::string_view::npos) {
    p.use = Slot::Use::buffer;
    p.result = text[bang + 1] - '0';
    if (text.substr(bang + 2).starts_with("{"))
      p.to = text.substr(bang + 3, text.size() - bang - 4);
    text = text.substr(0, bang);
  }
  std::size_t colon = std::min(text.find(':'), text.size());
  p.names = split(text.substr(0, colon), '|');
  if (colon == text.size()) {
    PW_ASSERT(p.use == Slot::Use::buffer, "a parameter without a use");
    return p;
  }
  std::string_view to = text.substr(colon + 1);
  if (to == "-") {
    p.use = Slot::Use::ignored;
  } else if (to == "none") {
    p.use = Slot::Use::none;
  } else if (to.starts_with("{")) {
    p.use = Slot::Use::attribute;
    p.to = to.substr(1, to.size() - 2);
  } else {
    p.use = Slot::Use::operand;
    p.to = to;
  }
  return p;
}

}  // namespace

namespace {

// Results are what the call returns, then what it wrote in the order of its arguments.
Mapping mapping_of(const ForeignOp& op) {
  Mapping out{op.target, op.op, {}, nullptr, Special::foreign, false, &op};
  int result = static_cast<int>(op.returns.size());
  for (const ForeignParameter& parameter : op.parameters) {
    Slot slot;
    slot.names.assign(parameter.names.begin(), parameter.names.end());
    slot.to = parameter.names.front();
    if (parameter.written()) {
      slot.use = parameter.out ? Slot::Use::buffer : Slot::Use::operand;
      slot.result = result++;
    }
    out.parameters.push_back(std::move(slot));
  }
  return out;
}

}  // namespace

namespace {

const std::map<std::string_view, std::vector<const Row*>>& own_rows() {
  static const auto rows = [] {
    std::map<std::string_view, std::vector<const Row*>> out;
    for (const Row& row : kRows) out[row.target].push_back(&row);
    return out;
  }();
  return rows;
}

}  // namespace

namespace {

// Second names that ATen has for its ops.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"absolute", "abs"},  {"arccos", "acos"},       {"arccosh", "acosh"},    {"arcsin", "asin"},
    {"arcsinh", "asinh"}, {"arctan", "atan"},       {"arctan2", "atan2"},    {"arctanh", "atanh"},
    {"clip", "clamp"},    {"concat", "cat"},        {"concatenate", "cat"},  {"divide", "div"},
    {"fix", "trunc"},     {"greater", "gt"},        {"greater_equal", "ge"}, {"less", "lt"},
    {"less_equal", "le"}, {"multiply", "mul"},      {"negative", "neg"},     {"not_equal", "ne"},
    {"subtract", "sub"},  {"swapdims", "transpose"}};

// Returns `aten.mul.Tensor` for `aten.multiply.Tensor`, and an empty text if it is not an alias.
std::string without_alias(std::string_view target) {
  constexpr std::string_view kAten = "aten.";
  if (!target.starts_with(kAten)) return {};
  const std::string_view rest = target.substr(kAten.size()), base = rest.substr(0, rest.find('.'));
  const auto found = std::find_if(std::begin(kAliases), std::end(kAliases),
                                  [&](const auto& alias) { return alias.first == base; });
  if (found == std::end(kAliases)) return {};
  return std::string(kAten).append(found->second).append(rest.substr(base.size()));
}

}  // namespace

namespace {

// Returns the parameter in the first item that gives it a default, or null.
const ForeignParameter* first_with_default(const std::vector<Mapping>& items,
                                           std::string_view name) {
  for (const Mapping& item : items)
    for (const ForeignParameter& parameter : item.foreign->parameters)
      if (parameter.default_value && parameter.called(name)) return &parameter;
  return nullptr;
}

// Marks the parameters of the last item whose default differs from that of the first one. A call
// that omits an argument means the default of the first item.
void mark_stated(std::vector<Mapping>& items) {
  Mapping& last = items.back();
  for (std::size_t i = 0; i < last.parameters.size(); ++i) {
    const ForeignParameter& parameter = last.foreign->parameters[i];
    if (!parameter.default_value) continue;
    const ForeignParameter* first = first_with_default(items, parameter.names.front());
    last.parameters[i].stated = first && first->default_value != parameter.default_value;
  }
}

}  // namespace

std::set<std::string> Table::targets() const {
  std::set<std::string> out;
  for (const auto& [target, rows] : own_rows()) out.emplace(target);
  if (foreign_ != nullptr)
    for (const auto& [target, items] : foreign_->by_target) out.insert(target);
  return out;
}

std::vector<Mapping>& Table::rows_of(std::string_view target) {
  const auto [entry, first] = mappings_.try_emplace(std::string(target));
  std::vector<Mapping>& list = entry->second;
  if (!first) return list;
  if (const ForeignOps::Items* items = foreign_ ? foreign_->find(target) : nullptr)
    for (const auto& item : *items) {
      list.push_back(mapping_of(*item));
      mark_stated(list);
    }
  if (const auto own = own_rows().find(target); own != own_rows().end())
    for (const Row* row : own->second) {
      Mapping m{row->target, row->op, {}, row->convert, row->special, copies(row->target), nullptr};
      for (std::string_view text : split(row->parameters, ' '))
        m.parameters.push_back(read_slot(text));
      list.push_back(std::move(m));
    }
  return list;
}

const std::vector<Mapping>* Table::add(std::shared_ptr<const ForeignOp> op) {
  std::vector<Mapping>& list = rows_of(op->target);
  list.push_back(mapping_of(*op));
  declared_.push_back(std::move(op));
  return &list;
}

std::optional<std::size_t> Mapping::first_written() const {
  std::optional<std::size_t> out;
  for (const Slot& p : parameters)
    if (p.result >= 0)
      out = std::min(out.value_or(static_cast<std::size_t>(p.result)),
                     static_cast<std::size_t>(p.result));
  return out;
}

const std::vector<Mapping>* Table::find(std::string_view target) {
  if (target.ends_with(".default")) target.remove_suffix(8);
  if (const std::vector<Mapping>& own = rows_of(target); !own.empty()) return &own;
  const std::string canonical = without_alias(target);
  if (canonical.empty()) return nullptr;
  const std::vector<Mapping>& list = rows_of(canonical);
  return list.empty() ? nullptr : &list;
}

}  // namespace pw::fx
