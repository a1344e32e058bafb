// Internal to cuda/: the used functions of the CUDA driver, found by dlopen. Types and numbers
// follow NVIDIA's cuda.h (12.0) under our own names, so that nothing is linked or included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pw::cuda {

struct CudaKernelNode {  ///< CUDA_KERNEL_NODE_PARAMS_v2
  void* function = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** params = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  void* context = nullptr;
};

struct CudaCopyEnd {  ///< half of CUDA_MEMCPY3D_v2
  std::size_t x = 0, y = 0, z = 0, level = 0;
  int memory = 2;  ///< device memory
  void* host = nullptr;
  std::uint64_t device = 0;
  void* array = nullptr;
  void* reserved = nullptr;
  std::size_t pitch = 0, height = 0;
};
struct CudaCopy {  ///< CUDA_MEMCPY3D_v2
  CudaCopyEnd from, to;
  std::size_t width = 0, height = 1, depth = 1;  ///< width in bytes
};

struct CudaEdge {  ///< CUgraphEdgeData
  unsigned char from_port = 0, to_port = 0;
  unsigned char type = 0;  ///< 1: programmatic
  unsigned char reserved[5] = {};
};

struct CudaUpdate {  ///< CUgraphExecUpdateResultInfo
  int result = 0;
  void* node = nullptr;    ///< that prevents the update
  void* before = nullptr;  ///< if an edge does: its other node
};

struct CudaConditional {  ///< CUgraphNodeParams of a conditional node; a loop unless changed
  int type = 13;          ///< CU_GRAPH_NODE_TYPE_CONDITIONAL
  int reserved[3] = {};
  std::uint64_t condition = 0;
  int kind = 1;             ///< CUgraphConditionalNodeType: if, while, switch
  unsigned bodies = 1;      ///< number of graphs
  void** body = nullptr;    ///< set to the graphs, which the driver owns
  void* context = nullptr;  ///< the current context
  unsigned char rest[208] = {};
};
static_assert(sizeof(CudaConditional) == 256);

/// Driver functions; each returns a CUresult, 0 for success.
struct CudaFunctions {
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*context_retain)(void**, int) = nullptr;
  int (*context_release)(int) = nullptr;
  int (*context_set)(void*) = nullptr;
  int (*memory_info)(std::size_t*, std::size_t*) = nullptr;
  int (*memory_allocate)(std::uint64_t*, std::size_t) = nullptr;
  int (*memory_free)(std::uint64_t) = nullptr;
  int (*copy_in)(std::uint64_t, const void*, std::size_t, void*) = nullptr;
  int (*copy_out)(void*, std::uint64_t, std::size_t, void*) = nullptr;
  int (*copy)(std::uint64_t, std::uint64_t, std::size_t, void*) = nullptr;
  int (*fill)(std::uint64_t, unsigned char, std::size_t, void*) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_wait)(void*) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*capture_begin)(void*, int) = nullptr;
  int (*capture_end)(void*, void**) = nullptr;
  int (*module_load)(void**, const void*) = nullptr;
  int (*module_unload)(void*) = nullptr;
  int (*module_function)(void**, void*, const char*) = nullptr;
  int (*function_set)(void*, int, int) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**) = nullptr;
  int (*graph_create)(void**, unsigned) = nullptr;
  int (*graph_destroy)(void*) = nullptr;
  int (*graph_kernel)(void**, void*, void* const*, std::size_t, const CudaKernelNode*) = nullptr;
  int (*graph_copy)(void**, void*, void* const*, std::size_t, const CudaCopy*, void*) = nullptr;
  int (*graph_child)(void**, void*, void* const*, std::size_t, void*) = nullptr;
  int (*graph_edges)(void*, void* const*, void* const*, const CudaEdge*,
                     std::size_t) = nullptr;  ///< optional: 12.3
  int (*graph_condition)(std::uint64_t*, void*, void*, unsigned,
                         unsigned) = nullptr;  ///< optional: 12.4
  int (*graph_loop)(void**, void*, void* const*, const CudaEdge*, std::size_t,
                    CudaConditional*) = nullptr;  ///< optional: 12.4
  int (*graph_instantiate)(void**, void*, unsigned long long) = nullptr;
  int (*graph_update)(void*, void*, CudaUpdate*) = nullptr;
  int (*graph_upload)(void*, void*) = nullptr;
  int (*graph_launch)(void*, void*) = nullptr;
  int (*executable_destroy)(void*) = nullptr;
};

struct CudaFill {  ///< CUDA_MEMSET_NODE_PARAMS_v1
  std::uint64_t at = 0;
  std::size_t pitch = 0;
  unsigned value = 0, element_bytes = 0;
  std::size_t width = 0, height = 0;  ///< width in elements
};

struct CudaAllocation {  ///< CUDA_MEM_ALLOC_NODE_PARAMS_v1
  unsigned char pool[88] = {};
  const void* accesses = nullptr;
  std::size_t access_count = 0;
  std::size_t bytes = 0;
  std::uint64_t address = 0;
};

/// Functions that read a captured graph. Those marked optional are null in older drivers.
struct CudaGraphQueries {
  int (*nodes)(void*, void**, std::size_t*) = nullptr;
  int (*edges)(void*, void**, void**, CudaEdge*, std::size_t*) = nullptr;  ///< optional: 12.3
  int (*plain_edges)(void*, void**, void**, std::size_t*) = nullptr;
  int (*node_type)(void*, int*) = nullptr;
  int (*kernel)(void*, CudaKernelNode*) = nullptr;
  int (*function_name)(const char**, void*) = nullptr;  ///< optional: 12.3
  int (*kernel_name)(const char**, void*) = nullptr;    ///< optional: 12.3
  int (*copy)(void*, CudaCopy*) = nullptr;
  int (*fill)(void*, CudaFill*) = nullptr;
  int (*child)(void*, void**) = nullptr;
  int (*allocation)(void*, CudaAllocation*) = nullptr;
  int (*conditional)(void*, CudaConditional*) = nullptr;  ///< optional: 13.2
  int (*error_name)(int, const char**) = nullptr;
};

/// Fills the functions that read a graph; returns the name of the first missing one that is not
/// optional, or an empty text.
[[nodiscard]] std::string fill(CudaGraphQueries& functions, void* library);

/// Fills all functions from a loaded library; returns the name of the first missing one, or an
/// empty text.
[[nodiscard]] std::string fill(CudaFunctions& functions, void* library);

}  // namespace pw::cuda
