#include "trainer/command_line/launched_ranks.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>

#include "hardware/files/foreign_text.h"
#include "trainer/ranks/communicator.h"
#include "trainer/ranks/data_parallel.h"
#include "trainer/runtime/aten.h"
#include "trainer/runtime/failure.h"

namespace trainfare::trainer {
namespace {

int64_t MebibytesToBytes(double mebibytes) {
  return static_cast<int64_t>(mebibytes * 1024.0 * 1024.0);
}

std::chrono::milliseconds WholeMilliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000.0));
}

}  // namespace

BucketOptions LaunchedRanks::buckets() const {
  return {MebibytesToBytes(bucket_mib_), MebibytesToBytes(first_bucket_mib_)};
}

void LaunchedRanks::AddOptions(CLI::App* command) {
  command
      ->add_option(
          "--bucket-mib", bucket_mib_, "Gradients sent at once, between ranks")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  command
      ->add_option("--first-bucket-mib",
                   first_bucket_mib_,
                   "The first of them: small, so that sending starts early")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  command
      ->add_option("--lost-after",
                   lost_after_s_,
                   "Seconds of silence until a rank counts as lost")
      ->check(CLI::Range(0.2, 86400.0))
      ->capture_default_str();
  command
      ->add_option("--join-within",
                   join_within_s_,
                   "Seconds for all ranks to come together (default: 20 on "
                   "one host, 120 over several)")
      ->check(CLI::Range(0.2, 86400.0));
}

int LaunchedRanks::Run(at::Device device,
                       const std::function<int(Communicator*)>& body) const {
  if (!place_) return body(nullptr);
  CommunicatorOptions options;
  options.lost_after = WholeMilliseconds(lost_after_s_);
  if (join_within_s_) options.join_within = WholeMilliseconds(*join_within_s_);
  options.on_lost = [](const std::string& line) {
    // Some other process wrote it.
    std::cerr << "error: " + hardware::OneLine(line) + "\n" << std::flush;
    // The main thread may hang in a collective, and files are renamed into
    // place or appended to by whole lines: nothing is half-written.
    ::_exit(1);
  };
  const auto communicator = Communicator::Join(*place_, device, options);
  try {
    const int code = body(communicator.get());
    communicator->Leave();
    return code;
  } catch (const std::exception& error) {
    communicator->Fail(FirstLine(error));
    throw;
  }
}

}  // namespace trainfare::trainer
