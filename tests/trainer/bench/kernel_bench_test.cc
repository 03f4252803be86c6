#include "trainer/bench/kernel_bench.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/error.h"
#include "model/presets.h"
#include "model/trainable.h"
#include "tests/near.h"
#include "trainer/bench/copy_bench.h"
#include "trainer/bench/kernel_operations.h"
#include "trainer/device/device_activity.h"
#include "trainer/measure/timed_calls.h"
#include "trainer/network/linear.h"

namespace trainfare::trainer {
namespace {

model::Workload Tiny(model::Precision precision, bool narrow_weights = false) {
  model::Workload workload;
  workload.architecture = model::FindArchitecture("bert-tiny");
  workload.batch = 2;
  workload.sequence_length = 16;
  workload.accumulation = 2;
  workload.precision = precision;
  workload.optimizer.implementation = model::OptimizerImplementation::kFused;
  if (narrow_weights) {
    workload.stack.narrow_weights = true;
    workload.optimizer.masters = model::Masters::kInUpdate;
  }
  return workload;
}

// Norms of heads follow each other, and are operations of their own.
model::Workload SmallDecoder(bool narrow_weights, bool head_norms) {
  model::Workload workload =
      Tiny(narrow_weights ? model::Precision::kBf16 : model::Precision::kFp32,
           narrow_weights);
  model::Architecture& a = workload.architecture;
  a = model::FindArchitecture("llama-3.2-1b");
  a.layers = 2;
  a.hidden = 32;
  a.heads = 4;
  a.key_value_heads = 2;
  a.head_size = 8;
  a.intermediate = 48;
  a.vocabulary = 96;
  if (head_norms) a.query_key_norm = model::QueryKeyNorm::kHead;
  return workload;
}

// Adapters beside matrices of attention, experts and shared experts.
model::Workload AdaptedExperts(bool narrow_weights) {
  model::Workload workload = SmallDecoder(narrow_weights, false);
  model::Architecture& a = workload.architecture;
  a.experts = 4;
  a.experts_per_token = 2;
  a.expert_intermediate = 24;
  a.shared_intermediate = 40;
  a.shared_expert_gate = true;
  a.dense_layers = 1;
  workload.trainable.lora_rank = 4;
  workload.trainable.lora = model::LoraMatricesOf(a);
  return workload;
}

model::Workload AllOfExperts() {
  model::Workload workload = AdaptedExperts(false);
  workload.trainable = {};
  workload.architecture.activation = model::Activation::kGeluNew;
  return workload;
}

// Of GPT-2's kind, whose GELU is written out, and of the other encoders'.
model::Workload Small(const char* model) {
  model::Workload workload = Tiny(model::Precision::kFp32);
  model::Architecture& a = workload.architecture;
  a = model::FindArchitecture(model);
  a.layers = 2;
  a.hidden = 32;
  a.heads = 4;
  a.intermediate = 48;
  a.vocabulary = 96;
  return workload;
}

std::vector<model::Workload> AllOfTiny() {
  return {SmallDecoder(false, false),
          SmallDecoder(false, true),
          SmallDecoder(true, true),
          AdaptedExperts(false),
          AdaptedExperts(true),
          AllOfExperts(),
          Small("gpt2"),
          Small("roberta-base"),
          Small("distilbert-base"),
          Tiny(model::Precision::kFp32),
          Tiny(model::Precision::kBf16),
          Tiny(model::Precision::kBf16, /*narrow_weights=*/true),
          Tiny(model::Precision::kFp16, /*narrow_weights=*/true)};
}

// Sums of the step's kernels, accumulation included.
struct Totals {
  int64_t matrix_flops = 0;
  int64_t bytes = 0;
};

DOCTEST_TEST_CASE("operations add up to the step that the model counts") {
  for (const model::Workload& workload : AllOfTiny()) {
    std::vector<std::string> left_out;
    const auto operations = OperationsOf(workload, &left_out);
    DOCTEST_CHECK(left_out.empty());
    Totals timed;
    for (const Operation& operation : operations) {
      for (const model::Kernel& kernel : operation.kernels) {
        const int64_t times = operation.per_step * kernel.launches;
        timed.matrix_flops += times * kernel.matrix_flops;
        timed.bytes += times * kernel.bytes();
      }
    }
    Totals step;
    const model::KernelList list = model::ExpandKernels(workload);
    for (const model::Segment& segment : list.segments) {
      for (int64_t i = segment.begin; i < segment.end; ++i) {
        const model::Kernel& kernel = list.kernels[static_cast<size_t>(i)];
        const int64_t times = segment.repeat * kernel.launches *
                              model::PassesInStep(workload, segment);
        step.matrix_flops += times * kernel.matrix_flops;
        step.bytes += times * kernel.bytes();
      }
    }
    DOCTEST_CHECK(timed.matrix_flops == step.matrix_flops);
    DOCTEST_CHECK(timed.bytes == step.bytes);
  }
}

DOCTEST_TEST_CASE("every operation has a program that makes what is counted") {
  for (const model::Workload& workload : AllOfTiny()) {
    std::vector<std::string> left_out;
    for (const Operation& operation : OperationsOf(workload, &left_out)) {
      const Program program = ProgramOf(operation, workload, at::kCPU);
      const at::NoGradGuard no_grad;
      const at::Tensor result = program(0);
      DOCTEST_CAPTURE(operation.name);
      if (operation.phase == model::Phase::kOptimizer) {
        DOCTEST_CHECK_FALSE(result.defined());
        continue;
      }
      const model::Kernel& kernel = operation.kernels.front();
      if (operation.kind == model::KernelKind::kReduction ||
          operation.name == "routing") {
        // Outputs are rows, columns or elements; rows of one expert.
        DOCTEST_CHECK(result.numel() % kernel.work_items == 0);
      } else {
        DOCTEST_CHECK(result.numel() == kernel.work_items);
      }
      // What is written is counted, but for masks of a byte an element, a loss
      // and the sums that one of two kernels of an operation makes.
      // A gather is counted in fp32, also of a table that is narrow.
      const bool narrow_table = workload.stack.narrow_weights &&
                                operation.kind == model::KernelKind::kEmbedding;
      const bool written = operation.name != "dropout" &&
                           operation.name != "negative log-likelihood";
      if (written && operation.kernels.size() == 1 && !narrow_table) {
        DOCTEST_CHECK(static_cast<int64_t>(result.nbytes()) ==
                      kernel.bytes_written);
      }
    }
  }
}

// Tokens 16 x 2 in fp32, two experts each: the products of 4 experts of 16 rows
// are 4 linear layers, what sends tokens to them and adds up is one operation.
DOCTEST_TEST_CASE("experts are products each, and sums over them at once") {
  const model::Workload workload = AllOfExperts();
  std::vector<std::string> left_out;
  int64_t routed = 0;
  int64_t products = 0;
  for (const Operation& operation : OperationsOf(workload, &left_out)) {
    const model::Kernel& kernel = operation.kernels.front();
    if (kernel.name == "routing") routed += operation.per_step;
    if (kernel.name != "expert in" && kernel.name != "expert gate") continue;
    DOCTEST_CHECK(kernel.gemm.m == 16);
    products += operation.per_step;
  }
  // Of one of two blocks, and of two micro-batches; gates and inner products.
  DOCTEST_CHECK(routed == 2);
  DOCTEST_CHECK(products == 2 * 2 * 4);
}

DOCTEST_TEST_CASE("under autocast norms and routing have casts among them") {
  model::Workload workload = AdaptedExperts(true);
  workload.stack.narrow_weights = false;
  workload.optimizer.masters = model::Optimizer().masters;
  std::vector<std::string> left_out;
  OperationsOf(workload, &left_out);
  for (const char* name : {"rms norm", "routing", "unpermute tokens"}) {
    DOCTEST_INFO(name);
    DOCTEST_CHECK(std::find(left_out.begin(), left_out.end(), name) !=
                  left_out.end());
  }
  DOCTEST_CHECK(std::find(left_out.begin(), left_out.end(), "adapter add") ==
                left_out.end());
}

DOCTEST_TEST_CASE("one launch a tensor, as counted and as launched") {
  MeasureRequest request;
  request.workload = Tiny(model::Precision::kFp32);
  request.workload.optimizer.kind = model::OptimizerKind::kAdan;
  KernelBenchOptions options;
  options.kinds = {model::KernelKind::kOptimizer};
  options.samples = 3;
  options.seconds_a_sample = 1e-3;
  options.activity = true;
  const auto record = [&] {
    const KernelBench bench = BenchKernels(request, at::kCPU, options);
    DOCTEST_REQUIRE(bench.records.size() == 1);
    DOCTEST_REQUIRE(bench.records.front().activity.has_value());
    return bench.records.front();
  };
  DOCTEST_CHECK(record().activity->launches == 1);
  options.access = model::FusedAccess::kOneTensor;
  const KernelRecord each = record();
  const int64_t tensors =
      model::ParameterTensorCount(request.workload.architecture);
  DOCTEST_CHECK(each.activity->launches == tensors);
  DOCTEST_CHECK(each.activity->active_s > 0);
  DOCTEST_CHECK(each.operation.kernels.front().launches == tensors);
  const auto json = nlohmann::json::parse(ToJsonLine(each));
  DOCTEST_CHECK(json["operation"] == "optimizer, a launch a tensor");
  DOCTEST_CHECK(json["activity"]["launches"] == tensors);
}

DOCTEST_TEST_CASE("time in which something ran counts once") {
  // 0-10, 2-5 and 8-12 cover 0-12; 20-21 stands apart.
  DOCTEST_CHECK(CoveredNanoseconds({{20, 21}, {0, 10}, {8, 12}, {2, 5}}) == 13);
  DOCTEST_CHECK(CoveredNanoseconds({}) == 0);
}

DOCTEST_TEST_CASE("a record of a copy") {
  CopyBenchOptions options;
  options.bytes = 1 << 20;
  options.calls = {.samples = 3, .seconds_a_sample = 1e-3};
  const auto json =
      nlohmann::json::parse(ToJsonLine(BenchCopy(options, at::kCPU)));
  DOCTEST_CHECK(json["kind"] == "copy");
  DOCTEST_CHECK(json["bytes"] == 1 << 20);
  DOCTEST_REQUIRE(json["samples"].size() == 3);
  // A sample is the time of one of its iterations.
  double sum_s = 0;
  for (const auto& sample : json["samples"]) {
    DOCTEST_CHECK(sample["time_s"] > 0);
    sum_s += sample["time_s"].get<double>() * json["iterations"].get<double>();
  }
  DOCTEST_CHECK(json["device"]["time_s"].get<double>() == Near(sum_s));
}

DOCTEST_TEST_CASE("a call is made as often as its record says") {
  int64_t made = 0;
  const TimedCalls calls = TimeCalls(
      at::kCPU, {.samples = 3, .seconds_a_sample = 1e-5}, [&] { ++made; });
  DOCTEST_CHECK(calls.iterations >= 1);
  DOCTEST_CHECK(calls.samples_s.size() == 3);
  // Three to learn what it takes, a sample that counts for nothing, and three.
  DOCTEST_CHECK(made == 3 + (1 + 3) * calls.iterations);
}

DOCTEST_TEST_CASE("linear layers give the products that their names say") {
  const at::Tensor gradient = at::randn({40, 24});
  const at::Tensor weight = at::randn({24, 32});
  const at::Tensor input = at::randn({40, 32});
  DOCTEST_CHECK(at::allclose(LinearInputGradient(gradient, weight),
                             at::mm(gradient, weight),
                             1e-4,
                             1e-5));
  DOCTEST_CHECK(at::allclose(LinearWeightGradient(gradient, input),
                             at::mm(gradient.t(), input),
                             1e-4,
                             1e-5));
}

DOCTEST_TEST_CASE("a record of an operation") {
  MeasureRequest request;
  request.workload = Tiny(model::Precision::kFp32);
  KernelBenchOptions options;
  options.kinds = {model::KernelKind::kEmbedding};
  options.samples = 3;
  options.seconds_a_sample = 1e-3;
  const KernelBench bench = BenchKernels(request, at::kCPU, options);
  DOCTEST_REQUIRE(bench.records.size() == 4);  // a gather, three tables
  for (const KernelRecord& record : bench.records) {
    const auto json = nlohmann::json::parse(ToJsonLine(record));
    DOCTEST_CHECK(json["schema"] == "trainfare.measurement/1");
    DOCTEST_CHECK(json["kind"] == "kernel");
    DOCTEST_CHECK(json["kernel_kind"] == "embedding");
    DOCTEST_CHECK(json["device"]["time_s"] > 0);
    DOCTEST_CHECK(json["workload"]["batch"] == 2);
    DOCTEST_REQUIRE(json["samples"].size() == 3);
    for (const auto& sample : json["samples"]) {
      DOCTEST_CHECK(sample["time_s"] > 0);
    }
  }
  // Three gathers of 32 tokens in each of two micro-batches.
  DOCTEST_CHECK(bench.records.front().operation.per_step == 6);
}

}  // namespace
}  // namespace trainfare::trainer
