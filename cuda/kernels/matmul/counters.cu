#ifndef PW_COUNTERS
#define PW_COUNTERS

// Increments a counter, and returns its previous value. Earlier writes of this block are visible to
// blocks that see the increment (release, acquire). In the emulator, blocks do not run at the same
// time, so no atomicity is needed.
#if defined(__CUDA_ARCH__)
PW_FUNCTION int pw_count_up(int* p) {
  int before;
  asm volatile(
      "{ .reg .u64 g; cvta.to.global.u64 g, %1; atom.acq_rel.gpu.global.add.s32 %0, [g], 1; }"
      : "=r"(before)
      : "l"(p)
      : "memory");
  return before;
}
#else
PW_FUNCTION int pw_count_up(int* p) {
  const int before = pw_load(p, 0);
  pw_store(p, 0, before + 1);
  return before;
}
#endif

#endif
