#include "trainer/bench/copy_bench.h"

#include <memory>
#include <string>
#include <utility>

#include "trainer/device/device.h"
#include "trainer/ranks/rank_records.h"
#include "trainer/runtime/line_writer.h"
#include "trainer/runtime/signals.h"
#include "trainer/training/session.h"

namespace trainfare::trainer {

CopyRecord BenchCopy(const CopyBenchOptions& options, at::Device device) {
  const auto bytes = at::TensorOptions(device).dtype(at::kByte);
  const at::Tensor source = at::ones({options.bytes}, bytes);
  const at::Tensor target = at::zeros({options.bytes}, bytes);
  RequireRanOn(device, target);
  CopyRecord record;
  record.device = Describe(device);
  record.bytes = options.bytes;
  record.calls =
      TimeCalls(device, options.calls, [&] { target.copy_(source); });
  return record;
}

int RunCopyBench(const CopyBenchOptions& options, at::Device device) {
  const std::unique_ptr<LineWriter> records =
      OpenRecords(options.out, /*ranks=*/nullptr);
  std::string line;
  {
    const NothingToLose timing;
    line = ToJsonLine(BenchCopy(options, device));
  }
  records->Write(std::move(line));
  return 0;
}

}  // namespace trainfare::trainer
