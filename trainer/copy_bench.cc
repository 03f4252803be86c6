#include "trainer/copy_bench.h"

#include <memory>

#include "trainer/communicator.h"
#include "trainer/device.h"
#include "trainer/line_writer.h"
#include "trainer/session.h"

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
  records->Write(ToJsonLine(BenchCopy(options, device)));
  return 0;
}

}  // namespace trainfare::trainer
