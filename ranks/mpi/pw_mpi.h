/* The interface of libpw_mpi.so: the few MPI functions that ranks need, so that programs run
 * without MPI. It compiles against any MPI library. */
#ifndef PW_MPI_H
#define PW_MPI_H
#include <stdint.h>

#define PW_MPI_VERSION 1

enum pw_mpi_collective { PW_MPI_ALL_GATHER, PW_MPI_ALL_TO_ALL, PW_MPI_BROADCAST, PW_MPI_BARRIER };

/* Functions return 0, or MPI's error code. */
struct pw_mpi {
  int version;
  const char* (*library)(void); /* MPI's name and version; callable before init */
  int (*init)(int* rank, int* size);
  /* The communicator of `size` neighbouring ranks, `stride` apart, that contains this rank. All
   * ranks call it. */
  int (*group)(int size, int stride, int* handle);
  /* Begins a collective over a group, of `count` parts of `bytes` each: all_gather and all_to_all
   * send so much to each rank. One at a time. */
  int (*begin)(enum pw_mpi_collective what, const void* send, void* receive, int count, int bytes,
               int root, int group);
  int (*test)(int* done);
  int (*finish)(void);
  void (*error)(int code, char* text, int size);
};

/* The symbol that the library exports. */
typedef const struct pw_mpi* (*pw_mpi_functions)(void);
#define PW_MPI_SYMBOL "pw_mpi_functions_1"
#endif
