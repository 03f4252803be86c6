#include "hardware/models/device_models.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "hardware/models/compiled_graph.h"
#include "model/presets.h"
#include "tests/near.h"
#include "tests/units.h"

namespace trainfare::hardware {
namespace {

// A made-up device of each kind with round figures.
Device RoundDevice(DeviceKind kind) {
  Device d;
  d.name = "round";
  d.kind = kind;
  d.memory_capacity = model::GiB(16);
  d.memory_bandwidth = model::GBPerSecond(1000);
  d.on_chip_memory = model::MiB(32);
  d.peak.fp32 = model::TFlopPerSecond(10);
  d.peak.bf16 = model::TFlopPerSecond(100);
  d.peak.fp16 = model::TFlopPerSecond(100);
  d.peak.vector = model::TFlopPerSecond(10);
  d.cores = 2;
  if (kind == DeviceKind::kGpu) {
    d.cores = 80;
    d.warps_per_core = 64;
    d.registers_per_core = 65536;
    d.shared_memory_per_core = model::KiB(96);
  }
  if (kind == DeviceKind::kNeuron || kind == DeviceKind::kSystolic) {
    d.systolic_rows = 128;
    d.systolic_columns = 128;
  }
  return d;
}

std::vector<double> Priors(DeviceKind kind) {
  std::vector<double> values;
  for (const ParameterInfo& info : ParametersOf(kind)) {
    values.push_back(info.prior);
  }
  return values;
}

model::Workload BertBase(int64_t batch, int64_t length) {
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-uncased");
  w.batch = batch;
  w.sequence_length = length;
  return w;
}

StepTime<double> StepOf(const Device& device,
                        const model::Workload& workload,
                        const std::vector<double>& values) {
  return EstimateStep<double>(
      device, workload, model::ExpandKernels(workload), values);
}

double SecondsOf(const Device& device, const model::Workload& workload) {
  return StepOf(device, workload, Priors(device.kind)).total().base();
}

constexpr DeviceKind kKinds[] = {DeviceKind::kCpu,
                                 DeviceKind::kGpu,
                                 DeviceKind::kNeuron,
                                 DeviceKind::kSystolic,
                                 DeviceKind::kDataflow};

}  // namespace

TEST_CASE("priors lie inside their bounds") {
  for (const DeviceKind kind : kKinds) {
    for (const ParameterInfo& info : ParametersOf(kind)) {
      CAPTURE(info.name);
      CHECK(info.lower <= info.prior);
      CHECK(info.prior <= info.upper);
      CHECK(info.prior_sigma > 0);
      CHECK(!info.meaning.empty());
      CHECK(!info.determined_by.empty());
      if (info.transform == Transform::kLog) CHECK(info.lower > 0);
    }
  }
}

TEST_CASE("what a device's file knows of it stands in for its kind's prior") {
  Device device = RoundDevice(DeviceKind::kSystolic);
  const auto of_kind = ParametersOf(DeviceKind::kSystolic);
  const auto priors_of = [](const Device& of) {
    std::vector<double> priors;
    for (const ParameterInfo& info : ParametersOf(of)) {
      priors.push_back(info.prior);
    }
    return priors;
  };
  std::vector<double> expected = Priors(DeviceKind::kSystolic);
  CHECK(priors_of(device) == expected);
  device.priors["step_overhead"] = 3e-3;
  for (size_t i = 0; i < of_kind.size(); ++i) {
    if (of_kind[i].name == "step_overhead") expected[i] = 3e-3;
  }
  CHECK(priors_of(device) == expected);
  CHECK(expected != Priors(DeviceKind::kSystolic));
}

TEST_CASE("more work never takes less time") {
  for (const DeviceKind kind : kKinds) {
    const Device device = RoundDevice(kind);
    CAPTURE(ToText(kind));
    double before = 0;
    for (const int64_t batch : {2, 4, 8, 16, 32, 64}) {
      const double time = SecondsOf(device, BertBase(batch, 128));
      CHECK(time >= before);
      before = time;
    }
    before = 0;
    for (const int64_t length : {32, 64, 128, 256, 512}) {
      const double time = SecondsOf(device, BertBase(8, length));
      CHECK(time >= before);
      before = time;
    }
    CHECK(SecondsOf(device, [] {
            auto w = BertBase(8, 128);
            w.architecture = model::FindArchitecture("bert-large-uncased");
            return w;
          }()) > SecondsOf(device, BertBase(8, 128)));
  }
}

TEST_CASE("a faster device is never slower") {
  for (const DeviceKind kind : kKinds) {
    CAPTURE(ToText(kind));
    for (const int64_t batch : {2, 16, 64}) {
      const model::Workload w = BertBase(batch, 128);
      const Device device = RoundDevice(kind);
      const double time = SecondsOf(device, w);
      Device bandwidth = device;
      bandwidth.memory_bandwidth = device.memory_bandwidth * 2.0;
      CHECK(SecondsOf(bandwidth, w) <= time);
      Device peak = device;
      peak.peak.fp32 = *device.peak.fp32 * 2.0;
      CHECK(SecondsOf(peak, w) <= time);
      Device vector = device;
      vector.peak.vector = *device.peak.vector * 2.0;
      CHECK(SecondsOf(vector, w) <= time);
      Device cache = device;
      cache.on_chip_memory = device.on_chip_memory * 2.0;
      CHECK(SecondsOf(cache, w) <= time);
    }
  }
}

TEST_CASE("accumulation repeats the passes, not the update") {
  for (const DeviceKind kind : kKinds) {
    CAPTURE(ToText(kind));
    const Device device = RoundDevice(kind);
    model::Workload w = BertBase(8, 128);
    const auto once = StepOf(device, w, Priors(kind));
    w.accumulation = 4;
    const auto four = StepOf(device, w, Priors(kind));
    CHECK(four.forward.total().base() == Near(4 * once.forward.total().base()));
    CHECK(four.optimizer.total().base() == Near(once.optimizer.total().base()));
  }
}

TEST_CASE("a pass is its head, layers and embeddings") {
  for (const DeviceKind kind : kKinds) {
    CAPTURE(ToText(kind));
    const auto step = StepOf(RoundDevice(kind), BertBase(8, 128), Priors(kind));
    const auto whole = [](const PassUnits<double>& units) {
      return (units.head + units.layer * 12.0 + units.embeddings).base();
    };
    CHECK(whole(step.backward_units) == Near(step.backward.total().base()));
    CHECK(whole(step.forward_units) == Near(step.forward.total().base()));
  }
}

// docs/models/cpu.md, "A product on a processor": (32, 768) (768, 3072) in fp32
// at 10 TFLOP/s x 0.8 x 32 / (32 + 32) = 4 TFLOP/s: 150,994,944 FLOPs take
// 37.748736 us. 9,437,184 bytes of weights at 1000 GB/s x 0.5 take
// 18.874368 us; 491,520 bytes of activations, 98.56 % from a cache of 32 MiB
// that is 4 times as fast: 0.983040 x (0.014436 + 0.985564 / 4) us = 0.256406
// us. Half of the shorter hidden, 5 us fixed: 37.748736 + 9.565387 + 5.
TEST_CASE("a product on a processor, worked by hand") {
  const Device device = RoundDevice(DeviceKind::kCpu);
  std::vector<double> p = Priors(DeviceKind::kCpu);
  p[models::kCpuGemmEfficiency] = 0.8;
  p[models::kCpuGemmHalfExtent] = 32;
  p[models::kCpuBandwidthEfficiency] = 0.5;
  p[models::kCpuWeightBandwidthRatio] = 1;
  p[models::kCpuCacheSpeedup] = 4;
  p[models::kCpuOverlap] = 0.5;
  p[models::kCpuKernelOverhead] = 5e-6;
  model::Kernel kernel;
  kernel.kind = model::KernelKind::kGemm;
  kernel.gemm = {1, 32, 3072, 768};
  kernel.matrix_flops = 2LL * 32 * 3072 * 768;
  kernel.bytes_read = (32LL * 768 + 768LL * 3072) * 4;
  kernel.bytes_written = 32LL * 3072 * 4;
  kernel.parameter_bytes = 768LL * 3072 * 4;
  const auto time = models::CpuKernelTime<double>(
      device,
      models::CpuRates(device, model::Precision::kFp32),
      model::Phase::kForward,
      kernel,
      p);
  CHECK(model::ToMicroseconds(time.compute) == Near(37.748736));
  CHECK(model::ToMicroseconds(time.memory) ==
        Near(0.5 * (18.874368 + 0.256406), 1e-5));
  CHECK(model::ToMicroseconds(time.total()) == Near(52.314123, 1e-6));
}

TEST_CASE("lengths that a device compiles need a time that somebody knows") {
  Device device = DeviceCatalog::Shipped().Find("a100_sxm4_80gb");
  model::Workload w;
  w.architecture = model::FindArchitecture("bert-base-uncased");
  const ShapePlan lengths{.distinct_lengths = 84, .compile_time_known = false};
  CHECK_NOTHROW(RequireSupported(device, w, lengths));
  device.static_shapes = true;
  CHECK_THROWS_WITH_AS(
      RequireSupported(device, w, lengths),
      "padding: a100_sxm4_80gb compiles each of 84 lengths; expected a compile "
      "time (run.compile_per_shape), a warm cache (run.warm_cache), or static "
      "or bucketed padding",
      model::InputError);
}

TEST_CASE("state spaces are for devices that have their kernels") {
  model::Workload w;
  w.architecture = model::FindArchitecture("granite-4.0-h-micro");
  w.precision = model::Precision::kBf16;
  CHECK_NOTHROW(RequireSupported(DeviceCatalog::Shipped().Find("h100_sxm"), w));
  CHECK_THROWS_WITH_AS(
      RequireSupported(DeviceCatalog::Shipped().Find("tpu_v3"), w),
      "model.state_space_layers: expected 0 on tpu_v3, for which no kernels of "
      "state spaces are known, got 36",
      model::InputError);
}

TEST_CASE("the delta rule is for devices that have its kernels") {
  model::Workload w;
  w.architecture = model::FindArchitecture("qwen3.5-0.8b");
  w.precision = model::Precision::kBf16;
  CHECK_NOTHROW(RequireSupported(DeviceCatalog::Shipped().Find("h100_sxm"), w));
  CHECK_THROWS_WITH_AS(
      RequireSupported(DeviceCatalog::Shipped().Find("tpu_v3"), w),
      "model.delta_rule_layers: expected 0 on tpu_v3, for which no kernels of "
      "the delta rule are known, got 18",
      model::InputError);
}

TEST_CASE("short convolutions are for devices that have their kernels") {
  model::Workload w;
  w.architecture = model::FindArchitecture("lfm2-350m");
  w.precision = model::Precision::kBf16;
  CHECK_NOTHROW(RequireSupported(DeviceCatalog::Shipped().Find("h100_sxm"), w));
  CHECK_THROWS_WITH_AS(
      RequireSupported(DeviceCatalog::Shipped().Find("tpu_v3"), w),
      "model.convolution_layers: expected 0 on tpu_v3, for which no kernels of "
      "short convolutions are known, got 10",
      model::InputError);
}

TEST_CASE("weights of few bits are for devices that widen them") {
  model::Workload w;
  w.architecture = model::FindArchitecture("llama-3.1-8b");
  w.precision = model::Precision::kBf16;
  w.trainable.lora_rank = 16;
  w.trainable.lora.query = true;
  w.trainable.base_bits = 4;
  CHECK_NOTHROW(RequireSupported(DeviceCatalog::Shipped().Find("h100_sxm"), w));
  CHECK_THROWS_WITH_AS(
      RequireSupported(DeviceCatalog::Shipped().Find("tpu_v3"), w),
      "trainable.lora.base_bits: expected 0 on tpu_v3, where nothing widens "
      "weights of few bits, got 4",
      model::InputError);
}

TEST_CASE("a limit of power is for boards whose power is known") {
  const DeviceCatalog& catalog = DeviceCatalog::Shipped();
  model::Workload w = BertBase(32, 512);
  w.power_limit = model::Watt(150);
  CHECK_NOTHROW(RequireSupported(catalog.Find("v100_pcie_16gb"), w));
  CHECK_THROWS_WITH_AS(
      RequireSupported(catalog.Find("tpu_v3"), w),
      "power_limit: expected 0 on tpu_v3, of which is not known how it slows "
      "down under a lower limit, got 150 W",
      model::InputError);
  // The board's own says nothing new.
  w.power_limit = model::Watt(1000);
  CHECK_NOTHROW(RequireSupported(catalog.Find("b200_sxm"), w));
  w.power_limit = model::Watt(50);
  CHECK_THROWS_WITH_AS(RequireSupported(catalog.Find("v100_pcie_16gb"), w),
                       "power_limit: expected more than 56 W, what "
                       "v100_pcie_16gb draws at rest, "
                       "got 50 W",
                       model::InputError);
}

TEST_CASE("fp8 is faster than 16 bits, by less than its peak") {
  model::Workload w = BertBase(32, 512);
  for (const DeviceKind kind : {DeviceKind::kGpu, DeviceKind::kSystolic}) {
    Device device = RoundDevice(kind);
    device.peak.fp8 = model::TFlopPerSecond(200);
    w.precision = model::Precision::kBf16;
    const StepTime<double> wide = StepOf(device, w, Priors(kind));
    w.precision = model::Precision::kFp8;
    const StepTime<double> narrow = StepOf(device, w, Priors(kind));
    CHECK(narrow.forward.matrix < wide.forward.matrix);
    // Attention's products and the head stay as they are.
    CHECK(narrow.forward.matrix > 0.5 * wide.forward.matrix);
    // What casts cost is no arithmetic.
    CHECK(narrow.forward.vector == wide.forward.vector);
    device.peak.fp4 = model::TFlopPerSecond(400);
    w.precision = model::Precision::kFp4;
    const StepTime<double> narrowest = StepOf(device, w, Priors(kind));
    CHECK(narrowest.forward.matrix < narrow.forward.matrix);
    CHECK(narrowest.forward.matrix > 0.25 * wide.forward.matrix);
  }
}

TEST_CASE("Muon's products are in bf16 beside a step in fp32") {
  model::Workload w = BertBase(4, 64);
  w.optimizer.kind = model::OptimizerKind::kMuon;
  for (const DeviceKind kind :
       {DeviceKind::kGpu, DeviceKind::kCpu, DeviceKind::kSystolic}) {
    const Device device = RoundDevice(kind);
    const auto update = [&](model::Precision precision) {
      w.precision = precision;
      return StepOf(device, w, Priors(kind)).optimizer.matrix;
    };
    // Parameters are in fp32 under autocast, too.
    const double wide = model::ToSeconds(update(model::Precision::kFp32));
    CHECK(wide > 0);
    CHECK(wide == Near(model::ToSeconds(update(model::Precision::kBf16))));
  }
  Device without = RoundDevice(DeviceKind::kGpu);
  without.peak.bf16 = std::nullopt;
  w.precision = model::Precision::kFp32;
  CHECK_THROWS_WITH_AS(RequireSupported(without, w),
                       "optimizer: expected another than muon on round, which "
                       "has no bf16 for its products, got muon",
                       model::InputError);
}

TEST_CASE("a precision that the device lacks is refused") {
  Device device = RoundDevice(DeviceKind::kGpu);
  device.peak.bf16 = std::nullopt;
  CHECK_THROWS_WITH_AS(RequirePrecision(device, model::Precision::kBf16),
                       "precision: round has no bf16; it runs fp32, fp16",
                       model::InputError);
}

TEST_CASE("what a device cannot do gets a reason") {
  const DeviceCatalog& catalog = DeviceCatalog::Shipped();
  const auto reason = [&](const char* device,
                          const model::Workload& workload,
                          const ShapePlan& shapes = {}) -> std::string {
    try {
      RequireSupported(catalog.Find(device), workload, shapes);
    } catch (const model::InputError& error) {
      return error.what();
    }
    return "";
  };
  model::Workload w = BertBase(8, 128);
  w.precision = model::Precision::kBf16;
  CHECK(reason("trainium1", w).empty());
  CHECK(reason("tpu_v2", w).empty());
  CHECK(reason("sambanova_sn10", w).empty());

  model::Workload rounding = w;
  rounding.stack.stochastic_rounding = true;
  CHECK(reason("trainium1", rounding).empty());
  CHECK(reason("a100_sxm4_80gb", rounding) ==
        "stochastic_rounding: what it costs is known of NeuronCores alone, "
        "which round so on the way out; not of a100_sxm4_80gb");

  model::Workload half = w;
  half.precision = model::Precision::kFp16;
  CHECK(reason("tpu_v2", half) ==
        "precision: tpu_v2 has no fp16; it runs fp32, bf16");

  model::Workload checkpointed = w;
  checkpointed.gradient_checkpointing = true;
  CHECK(reason("trainium1_core", checkpointed) ==
        "gradient_checkpointing: not supported by the training stack of "
        "trainium1_core; use a smaller batch and accumulation");
  CHECK(reason("tpu_v2", checkpointed).empty());

  CHECK(reason("groq_lpu", half) ==
        "device: groq_lpu runs inference only; expected work: forward, got "
        "training");
  half.work = model::Work::kForward;
  CHECK(reason("groq_lpu", half).empty());
  half.architecture = model::FindArchitecture("bert-large-uncased");
  CHECK(reason("groq_lpu", half) ==
        "model: the weights of bert-large-uncased take 670 MB, groq_lpu holds "
        "230 MB on chip and nothing streams them; choose a smaller model");
  CHECK(reason("cerebras_wse2", half).empty());

  CHECK(reason("trainium1", w, {.distinct_lengths = 84}) ==
        "padding: trainium1 compiles each of 84 lengths; expected a compile "
        "time (run.compile_per_shape), a warm cache (run.warm_cache), or "
        "static or bucketed padding");
  CHECK(reason("trainium1",
               w,
               {.distinct_lengths = 84, .compile_time_known = true})
            .empty());
  w.precision = model::Precision::kFp32;
  CHECK(reason("v100_pcie_16gb", w, {.distinct_lengths = 84}).empty());
}

TEST_CASE("kernels by themselves add up to the step, where nothing overlaps") {
  const Device cpu = RoundDevice(DeviceKind::kCpu);
  const Device gpu = RoundDevice(DeviceKind::kGpu);
  const model::Workload workload = BertBase(8, 128);
  const model::KernelList list = model::ExpandKernels(workload);
  const auto sum_of = [&](const Device& device) {
    const std::vector<double> values = Priors(device.kind);
    model::Seconds<> sum;
    for (const model::Segment& segment : list.segments) {
      for (int64_t i = segment.begin; i < segment.end; ++i) {
        sum += EstimateKernel<double>(device,
                                      workload,
                                      segment.phase,
                                      list.kernels[static_cast<size_t>(i)],
                                      values) *
               static_cast<double>(segment.repeat);
      }
    }
    return sum;
  };
  const auto phases_of = [&](const Device& device) {
    const auto step = StepOf(device, workload, Priors(device.kind));
    return step.forward.total() + step.backward.total() +
           step.optimizer.total();
  };
  CHECK(sum_of(cpu) / phases_of(cpu) == Near(1.0, 1e-12));
  // On a GPU a kernel is not faster by itself than its launch, so the sum is
  // the step's at least; a full queue hides launches.
  CHECK(sum_of(gpu) / phases_of(gpu) >= 1.0 - 1e-9);
  CHECK(sum_of(gpu) / phases_of(gpu) < 1.5);
}

TEST_CASE("a device of compiled graphs has no kernels by themselves") {
  const Device tpu = RoundDevice(DeviceKind::kSystolic);
  CHECK_THROWS_AS(EstimateKernel<double>(
                      tpu, BertBase(8, 128), model::Phase::kForward, {}, {}),
                  model::InputError);
}

// A compiler has to read gradients for their means, gradients and parameters for
// the norms, both again for the update, and writes parameters; of pieces of flat
// tensors a second moment comes with each.
TEST_CASE("a compiled update of Adafactor moves its tensors, by hand") {
  model::Workload w;
  w.optimizer.kind = model::OptimizerKind::kAdafactor;
  model::Kernel kernel;
  kernel.work_items = 1000;
  CHECK(models::FusedOptimizerBytes(w, kernel) == 4.0 * 1000 * (5 + 1));
  w.parallel.data = 2;
  w.parallel.shard = model::Shard::kZero1;
  CHECK(models::FusedOptimizerBytes(w, kernel) == 4.0 * 1000 * (6 + 2));
}

// Sums of 1000 gradients in fp32: 8000 bytes read and 4000 written by themselves,
// 4000 read where the product that makes them adds.
TEST_CASE("a chip's compiler adds gradients in their product") {
  model::Workload w;
  model::Kernel add;
  add.name = "gradient add";
  add.bytes_read = 8000;
  add.bytes_written = 4000;
  add.parameter_bytes = 12'000;
  add.parameter_bytes_written = 4000;
  CHECK(models::AsCompiled(w, add) == add);
  w.stack.fusion = model::Fusion::kCompiled;
  const model::Kernel in_product = models::AsCompiled(w, add);
  CHECK(in_product.bytes_read == 4000);
  CHECK(in_product.bytes_written == 0);
  CHECK(in_product.parameter_bytes == 4000);
  CHECK(in_product.parameter_bytes_written == 0);
  // What XLA compiles is listed so.
  w.stack.fusion = model::Fusion::kXla;
  CHECK(models::AsCompiled(w, add) == add);
}

// AdamW reads four tensors and writes three; of its two moments in 8 bits each
// number takes a byte, and 4 for 256 of them: 2 x 1000 x (4 - 1 - 4/256) less.
TEST_CASE("a compiled update is as wide as its state") {
  model::Workload w;
  w.optimizer.kind = model::OptimizerKind::kAdamW;
  w.precision = model::Precision::kBf16;
  w.stack.narrow_weights = true;
  model::Kernel kernel;
  kernel.work_items = 256'000;
  CHECK(models::FusedOptimizerBytes(w, kernel) == 4.0 * 256'000 * 7);
  w.optimizer.masters = model::Masters::kNone;
  CHECK(models::FusedOptimizerBytes(w, kernel) == 2.0 * 256'000 * 7);
  w.optimizer.masters = model::Masters::kApart;
  w.optimizer.state_bits = 8;
  CHECK(models::FusedOptimizerBytes(w, kernel) ==
        256'000 * (4.0 * 7 - 2 * 2 * (4 - 1 - 4.0 / 256)));
}

}  // namespace trainfare::hardware
