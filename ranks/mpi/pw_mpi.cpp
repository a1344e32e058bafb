// libpw_mpi.so: implements pw_mpi.h with this machine's MPI library.
#include "ranks/mpi/pw_mpi.h"

#include <cstring>
#include <vector>

#include <mpi.h>

namespace {

std::vector<MPI_Comm> groups;
MPI_Request pending = MPI_REQUEST_NULL;
MPI_Datatype part = MPI_DATATYPE_NULL;  // of the pending collective

const char* library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (text[0] == '\0') MPI_Get_library_version(text, &length);
  if (char* rest = std::strpbrk(text, ",\n")) *rest = '\0';
  return text;
}

int init(int* rank, int* size) {
  int provided = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided))
    return code;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const int code = MPI_Comm_rank(MPI_COMM_WORLD, rank)) return code;
  return MPI_Comm_size(MPI_COMM_WORLD, size);
}

int group(int size, int stride, int* handle) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm made = MPI_COMM_NULL;
  const int color = rank / (size * stride) * stride + rank % stride;
  if (const int code = MPI_Comm_split(MPI_COMM_WORLD, color, rank, &made)) return code;
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  *handle = static_cast<int>(groups.size());
  groups.push_back(made);
  return 0;
}

int start(pw_mpi_collective what, const void* send, void* receive, int count, int root,
          MPI_Comm over) {
  switch (what) {
    case PW_MPI_ALL_GATHER:
      return MPI_Iallgather(send, count, part, receive, count, part, over, &pending);
    case PW_MPI_ALL_TO_ALL:
      return MPI_Ialltoall(send, count, part, receive, count, part, over, &pending);
    case PW_MPI_BROADCAST: return MPI_Ibcast(receive, count, part, root, over, &pending);
    case PW_MPI_BARRIER: return MPI_Ibarrier(over, &pending);
  }
  return MPI_ERR_ARG;
}

int begin(pw_mpi_collective what, const void* send, void* receive, int count, int bytes, int root,
          int over) {
  if (const int code = MPI_Type_contiguous(bytes, MPI_BYTE, &part)) return code;
  if (const int code = MPI_Type_commit(&part)) return code;
  return start(what, send, receive, count, root, groups[static_cast<std::size_t>(over)]);
}

int test(int* done) {
  const int code = MPI_Test(&pending, done, MPI_STATUS_IGNORE);
  if (code == 0 && *done != 0) MPI_Type_free(&part);
  return code;
}

int finish() { return MPI_Finalize(); }

void error(int code, char* text, int size) {
  char whole[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, whole, &length);
  std::strncpy(text, whole, static_cast<std::size_t>(size) - 1);
  text[size - 1] = '\0';
}

constexpr pw_mpi kFunctions{PW_MPI_VERSION, library, init, group, begin, test, finish, error};

}  // namespace

extern "C" const pw_mpi* pw_mpi_functions_1() { return &kFunctions; }
