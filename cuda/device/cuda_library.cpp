#include "cuda/device/cuda_library.hpp"

#include "base/dynamic_library.hpp"

namespace pw::cuda {

std::string fill(CudaFunctions& f, void* library) {
  FunctionFinder optional(library), find(library);
  optional(f.graph_edges, "cuGraphAddDependencies_v2");
  optional(f.graph_condition, "cuGraphConditionalHandleCreate");
  optional(f.graph_loop, "cuGraphAddNode_v2");
  find(f.init, "cuInit");
  find(f.version, "cuDriverGetVersion");
  find(f.error_name, "cuGetErrorName");
  find(f.device_count, "cuDeviceGetCount");
  find(f.device_get, "cuDeviceGet");
  find(f.device_name, "cuDeviceGetName");
  find(f.device_attribute, "cuDeviceGetAttribute");
  find(f.context_retain, "cuDevicePrimaryCtxRetain");
  find(f.context_release, "cuDevicePrimaryCtxRelease_v2");
  find(f.context_set, "cuCtxSetCurrent");
  find(f.memory_info, "cuMemGetInfo_v2");
  find(f.memory_allocate, "cuMemAlloc_v2");
  find(f.memory_free, "cuMemFree_v2");
  find(f.copy_in, "cuMemcpyHtoDAsync_v2");
  find(f.copy_out, "cuMemcpyDtoHAsync_v2");
  find(f.copy, "cuMemcpyDtoDAsync_v2");
  find(f.fill, "cuMemsetD8Async");
  find(f.stream_create, "cuStreamCreate");
  find(f.stream_wait, "cuStreamSynchronize");
  find(f.stream_destroy, "cuStreamDestroy_v2");
  find(f.capture_begin, "cuStreamBeginCapture_v2");
  find(f.capture_end, "cuStreamEndCapture");
  find(f.module_load, "cuModuleLoadData");
  find(f.module_unload, "cuModuleUnload");
  find(f.module_function, "cuModuleGetFunction");
  find(f.function_set, "cuFuncSetAttribute");
  find(f.launch, "cuLaunchKernel");
  find(f.graph_create, "cuGraphCreate");
  find(f.graph_destroy, "cuGraphDestroy");
  find(f.graph_kernel, "cuGraphAddKernelNode_v2");
  find(f.graph_copy, "cuGraphAddMemcpyNode");
  find(f.graph_child, "cuGraphAddChildGraphNode");
  find(f.graph_instantiate, "cuGraphInstantiateWithFlags");
  find(f.graph_update, "cuGraphExecUpdate_v2");
  find(f.graph_upload, "cuGraphUpload");
  find(f.graph_launch, "cuGraphLaunch");
  find(f.executable_destroy, "cuGraphExecDestroy");
  return find.missing();
}

std::string fill(CudaGraphQueries& f, void* library) {
  FunctionFinder optional(library), find(library);
  optional(f.edges, "cuGraphGetEdges_v2");
  optional(f.function_name, "cuFuncGetName");
  optional(f.kernel_name, "cuKernelGetName");
  optional(f.conditional, "cuGraphNodeGetParams");
  find(f.nodes, "cuGraphGetNodes");
  find(f.plain_edges, "cuGraphGetEdges");
  find(f.node_type, "cuGraphNodeGetType");
  find(f.kernel, "cuGraphKernelNodeGetParams_v2");
  find(f.copy, "cuGraphMemcpyNodeGetParams");
  find(f.fill, "cuGraphMemsetNodeGetParams");
  find(f.child, "cuGraphChildGraphNodeGetGraph");
  find(f.allocation, "cuGraphMemAllocNodeGetParams");
  find(f.error_name, "cuGetErrorName");
  return find.missing();
}

}  // namespace pw::cuda
