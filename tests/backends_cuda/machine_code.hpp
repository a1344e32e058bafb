// What tests of machine code need: NVRTC, and a disassembler of what it makes. Tests with the tag
// [machine_code] are hidden and have ctest entries of their own, so that a skip shows as one.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "cuda/device/nvrtc.hpp"
#include "kernel_reports/sass.hpp"

namespace pw::test {

/// Ends the program as skipped, with exit code 77, where one of both is absent.
struct MachineCodeTools {
  cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  cuda::Disassembler nvdisasm = cuda::Disassembler::find();

  MachineCodeTools() {
    if (nvrtc.present() && nvdisasm.present()) return;
    std::fprintf(stderr, "SKIPPED: NVRTC is %s; nvdisasm is %s\n", nvrtc.state().c_str(),
                 nvdisasm.state().c_str());
    std::exit(77);
  }
};

}  // namespace pw::test
