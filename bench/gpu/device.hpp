// Options, drivers, and pages of the benchmark programs in this folder.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/io/file.hpp"
#include "bench/measure.hpp"
#include "bench/page.hpp"
#include "cuda/device/cuda_driver.hpp"
#include "cuda/device/preparing_driver.hpp"

namespace pw::bench {

/// Opens a device with the precompiled kernels of the folder `cubins`, if given. Without a device
/// the program exits with 5.
inline std::unique_ptr<cuda::Driver> open_device(const std::string& cubins, bool libraries) {
  cuda::CudaDriverOptions options;
  options.prepared = cubins;
  options.libraries = libraries;
  auto driver = cuda::CudaDriver::open(options);
  if (driver) return std::move(*driver);
  std::cerr << driver.error().front().message << "; " << driver.error().front().help << "\n";
  std::exit(5);
}

/// Returns the Markdown of this file as a part that follows tables; nothing for an empty path.
inline std::string more(const std::string& path) {
  if (path.empty()) return {};
  return "\n" + need(std::make_shared<Context>(), read_file(path));
}

struct DeviceArgs {
  std::string driver = "cuda", output, more, cubins, prepare;
  /// Returns true if kernels are only compiled.
  [[nodiscard]] bool prepares() const { return !prepare.empty(); }
  /// Returns true if times are those of a device.
  [[nodiscard]] bool device() const { return !prepares() && driver == "cuda"; }
  [[nodiscard]] bool large() const { return device() || prepares(); }  ///< at a device's sizes
};

inline void add_device_options(CLI::App& app, DeviceArgs& args) {
  app.add_option("--driver", args.driver, "cuda, or host: everything runs, no time is shown")
      ->check(CLI::IsMember({"cuda", "host"}))
      ->capture_default_str();
  app.add_option("--output", args.output,
                 "also write the tables as a section of this Markdown page");
  app.add_option("--more", args.more, "append this file of Markdown to the section");
  auto* cubins = app.add_option("--cubins", args.cubins,
                                "a folder of compiled kernels, for a device without NVRTC");
  app.add_option("--prepare", args.prepare,
                 "fill that folder for an architecture, such as sm_90, while running on the host")
      ->needs(cubins);
}

/// Returns a driver that fills the folder of compiled kernels.
inline std::unique_ptr<cuda::Driver> preparing_driver(const DeviceArgs& args) {
  std::filesystem::create_directories(args.cubins);
  return std::make_unique<cuda::PreparingDriver>(args.cubins, cuda::Target{args.prepare, false},
                                                 false);
}

/// Prints the section, and writes it to the page if there is one.
inline void publish(const DeviceArgs& args, const std::string& title, const cuda::Driver& driver,
                    const std::string& text) {
  std::cout << text;
  if (!args.output.empty())
    need(std::make_shared<Context>(),
         write_section(args.output, title, args.device() ? driver.device() : "Emulator", text));
}

}  // namespace pw::bench
