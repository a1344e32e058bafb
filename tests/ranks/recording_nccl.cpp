// The part of libnccl that ranks need, between processes of this machine: data passes through a
// file that all of them map (PW_NCCL_MEMORY), and every call is a line of PW_NCCL_LOG.RANK.
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr std::size_t kRanks = 8, kPart = std::size_t{1} << 22;  // bytes from one rank to another

struct Memory {
  std::atomic<int> arrived, round;
  char parts[kRanks][kRanks][kPart];  // by sender, then receiver
};

struct Comm {
  int rank, size;
  Memory* memory;
  std::FILE* log;
};

struct Posted {
  const void* from;
  void* to;
  std::size_t bytes;
  int peer;
  Comm* comm;
};
std::vector<Posted> posted;

void say(const Comm& comm, const char* what, std::size_t bytes, int peer) {
  std::fprintf(comm.log, "%s %zu %d\n", what, bytes, peer);
  std::fflush(comm.log);
}

void wait_for_all(const Comm& comm) {
  Memory& m = *comm.memory;
  const int round = m.round;
  if (++m.arrived == comm.size) {
    m.arrived = 0;
    ++m.round;
    return;
  }
  while (m.round == round) sched_yield();
}

struct Id {
  char bytes[128];
};

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 21800;
  return 0;
}
const char* ncclGetErrorString(int) { return "recorded"; }
int ncclGetUniqueId(Id* id) {
  std::memset(id, 7, sizeof *id);
  return 0;
}

int ncclCommInitRank(void** out, int size, Id id, int rank) {
  if (id.bytes[0] != 7 || id.bytes[127] != 7 || size > static_cast<int>(kRanks)) return 4;
  const int file = ::open(std::getenv("PW_NCCL_MEMORY"), O_RDWR | O_CREAT, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Memory)) != 0) return 2;
  void* memory = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  const std::string log = std::string(std::getenv("PW_NCCL_LOG")) + "." + std::to_string(rank);
  auto* comm = new Comm{rank, size, static_cast<Memory*>(memory), std::fopen(log.c_str(), "w")};
  say(*comm, "init", static_cast<std::size_t>(size), rank);
  *out = comm;
  return 0;
}
int ncclCommSplit(void*, int, int, void**, void*) { return 3; }
int ncclCommDestroy(void* comm) {
  auto* own = static_cast<Comm*>(comm);
  say(*own, "destroy", 0, own->rank);
  std::fclose(own->log);
  delete own;
  return 0;
}

int ncclAllGather(const void* send, void* receive, std::size_t bytes, int, void* comm, void*) {
  auto& own = *static_cast<Comm*>(comm);
  if (bytes > kPart) return 4;
  say(own, "all_gather", bytes, own.rank);
  std::memcpy(own.memory->parts[own.rank][0], send, bytes);
  wait_for_all(own);
  for (int r = 0; r < own.size; ++r)
    std::memcpy(static_cast<char*>(receive) + static_cast<std::size_t>(r) * bytes,
                own.memory->parts[r][0], bytes);
  wait_for_all(own);
  return 0;
}
int ncclBroadcast(const void* send, void* receive, std::size_t bytes, int, int root, void* comm,
                  void*) {
  auto& own = *static_cast<Comm*>(comm);
  if (bytes > kPart) return 4;
  say(own, "broadcast", bytes, root);
  if (own.rank == root) std::memcpy(own.memory->parts[root][0], send, bytes);
  wait_for_all(own);
  std::memcpy(receive, own.memory->parts[root][0], bytes);
  wait_for_all(own);
  return 0;
}

int ncclGroupStart() {
  posted.clear();
  return 0;
}
int ncclSend(const void* from, std::size_t bytes, int, int peer, void* comm, void*) {
  posted.push_back({from, nullptr, bytes, peer, static_cast<Comm*>(comm)});
  return bytes > kPart ? 4 : 0;
}
int ncclRecv(void* to, std::size_t bytes, int, int peer, void* comm, void*) {
  posted.push_back({nullptr, to, bytes, peer, static_cast<Comm*>(comm)});
  return bytes > kPart ? 4 : 0;
}
int ncclGroupEnd() {
  if (posted.empty()) return 0;
  Comm& own = *posted.front().comm;
  for (const Posted& p : posted) {
    say(own, p.from != nullptr ? "send" : "receive", p.bytes, p.peer);
    if (p.from != nullptr) std::memcpy(own.memory->parts[own.rank][p.peer], p.from, p.bytes);
  }
  wait_for_all(own);
  for (const Posted& p : posted)
    if (p.to != nullptr) std::memcpy(p.to, own.memory->parts[p.peer][own.rank], p.bytes);
  wait_for_all(own);
  return 0;
}

}  // extern "C"
