#include "trainer/training/resolved_options.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace trainfare::trainer {
namespace {

DOCTEST_TEST_CASE("adapters stand beside query and value where none is named") {
  using Words = std::vector<std::string>;
  const auto matrices = [](const TrainOptions& options) {
    return model::ToWords(Resolved(options).workload.trainable.lora);
  };
  TrainOptions options;
  DOCTEST_CHECK(matrices(options).empty());
  options.workload.trainable.lora_rank = 4;
  DOCTEST_CHECK(matrices(options) == Words{"query", "value"});
  options.workload.trainable.lora.key = true;
  DOCTEST_CHECK(matrices(options) == Words{"key"});
}

}  // namespace
}  // namespace trainfare::trainer
