#include "calibrate/records/import/table_model.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "model/presets.h"
#include "tests/calibrate/records/import/table_rows.h"
#include "tests/near.h"

namespace trainfare::calibrate {
namespace {

// `dimensions`: hidden, layers, heads, kv_heads, intermediate, vocab.
std::string RowOf(std::string_view model, std::string_view dimensions) {
  return fmt::format(
      "H100-SXM5-80GB,8,{},{},4096,1,4,32,8,1,1,zero1,none,bf16,none,,"
      "Megatron-LM,,pretrain,step_s,300,",
      model,
      dimensions);
}

model::Architecture NetworkOf(std::string_view model,
                              std::string_view dimensions) {
  const Table table = ParseDecoder(RowOf(model, dimensions) + "\n");
  CAPTURE(model);
  REQUIRE(table.observations.size() == 1);
  return table.observations[0].workload.architecture;
}

// DeepSeek-V2's first block has no experts.
TEST_CASE("a name may say how many blocks of a model there are") {
  const std::string columns = "5120,4,128,128,1536,102400";
  const model::Architecture cut = NetworkOf("deepseekv2-l4", columns);
  CHECK(cut.name == "deepseekv2-l4");
  model::Architecture whole = model::FindArchitecture("deepseek-v2");
  CHECK(cut.layers == 4);
  CHECK(cut.dense_layers == 1);
  CHECK(cut.intermediate == 12288);
  CHECK(cut.expert_intermediate == 1536);
  whole.name = cut.name;
  whole.layers = 4;
  CHECK(cut == whole);
  // Fewer than its blocks without experts.
  const model::Architecture dense =
      NetworkOf("deepseekv3-l2", "7168,2,128,128,2048,129280");
  CHECK(dense.dense_layers == 2);
  CHECK(dense.expert_layers() == 0);
  // More than there are, or others than the column says, are no part of it.
  CHECK(ReasonOfDecoder(RowOf("deepseekv2-l64", "5120,64,128,128,1536,102400"))
            .starts_with("model: deepseekv2-l64 is not known"));
  CHECK(ReasonOfDecoder(RowOf("deepseekv2-l5", columns))
            .starts_with("model: deepseekv2-l5 is not known"));
}

TEST_CASE("a model of a family has its blocks and a row's dimensions") {
  const model::Architecture grok =
      NetworkOf("grok1-314b", "6144,64,48,8,32768,131072");
  CHECK(grok.name == "grok1-314b");
  CHECK(grok.norm_placement == model::NormPlacement::kBefore);
  CHECK(grok.untied_output);
  CHECK(grok.query_head_size() == 128);
  CHECK(grok.expert_intermediate == 32768);
  CHECK(grok.experts == 8);
  const model::Architecture nemotron =
      NetworkOf("nemotron4-15b", "6144,32,48,8,24576,256000");
  CHECK(nemotron.name == "nemotron-4-15b");
  CHECK(nemotron.activation == model::Activation::kReluSquared);
}

// nanotron's of 8.86 B in all has two tables, that of 1.34 B one.
TEST_CASE("a row may say whether the output layer is the word embeddings") {
  const auto network = [](std::string_view model,
                          std::string_view dimensions,
                          std::string_view notes) {
    std::string row = RowOf(model, dimensions);
    const std::string_view before = "Megatron-LM,";
    row.insert(row.find(before) + before.size(), notes);
    const Table table = ParseDecoder(row + "\n");
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.architecture;
  };
  const model::Architecture large =
      network("llama-8.86b", "4096,32,32,32,14336,131072", "untied embeddings");
  CHECK(large.untied_output);
  CHECK(TotalParameters(large) == Near(8.86e9, 1e-3));
  const model::Architecture small =
      network("llama-1.34b", "2048,16,32,32,8192,131072", "tied embeddings");
  CHECK_FALSE(small.untied_output);
  CHECK(TotalParameters(small) == Near(1.34e9, 3e-3));
}

// Which of fewer blocks are state spaces no column says.
TEST_CASE("a model of state spaces is as its name has it") {
  const model::Architecture hybrid =
      NetworkOf("nemotron-h-56b", "8192,118,64,8,32768,131072");
  CHECK(hybrid == model::FindArchitecture("nemotron-h-56b"));
  CHECK(ReasonOfDecoder(RowOf("nemotron-h-56b", "8192,20,64,8,32768,131072")) ==
        "model: which blocks of nemotron-h-56b are state spaces is not stated");
  CHECK(ReasonOfDecoder(RowOf("qwen3.5-9b", "4096,16,16,4,12288,248320")) ==
        "model: which blocks of qwen3.5-9b have the delta rule is not stated");
  CHECK(ReasonOfDecoder(RowOf("lfm2-1.2b", "2048,8,32,8,8192,65536")) ==
        "model: which blocks of lfm2-1.2b are convolutions is not stated");
}

// Megatron-Bridge's recipes of these predict two tokens further.
TEST_CASE("a program may predict tokens further") {
  const auto row = [](std::string_view model, std::string_view notes) {
    return fmt::format(
        "H100-SXM5-80GB,8,{},,,,,,,8192,1,1,8,8,1,1,,none,bf16,none,,"
        "NeMo / Megatron-Core,{},pretrain,tokens_per_s_per_device,300,",
        model,
        notes);
  };
  const auto further = [&](std::string_view model, std::string_view notes) {
    const Table table = ParseDecoder(row(model, notes) + "\n");
    CAPTURE(model);
    REQUIRE(table.observations.size() == 1);
    return table.observations[0].workload.architecture.next_token_blocks;
  };
  constexpr std::string_view kContainer = "container 26.06 NeMo Container";
  CHECK(further("nemotron-3-super", kContainer) == 2);
  CHECK(further("nemotron-3-5-lightning", kContainer) == 2);
  CHECK(further("nemotron-3-super", "") == 0);
  CHECK(further("nemotron-3-nano", kContainer) == 0);
  CHECK(ReasonOfDecoder(row("nemotron-3-ultra", kContainer)) ==
        "model: Nemotron 3 Ultra: how it is sharded and what is on the host is "
        "not stated");
}

TEST_CASE("another width than a preset's has another feed-forward") {
  // Of Llama's no ratio is the family's; BLOOM's, MPT's and GPT's are 4.
  CHECK(
      ReasonOfDecoder(RowOf("llama-34b", "8192,48,64,8,,32000")) ==
      "model: intermediate of llama-34b is not stated, and hidden is not that "
      "of its preset");
  CHECK(NetworkOf("llama-34b", "8192,48,64,8,22016,32000").intermediate ==
        22016);
  CHECK(NetworkOf("bloom-3b-x", "2560,30,32,,,").intermediate == 10240);
  CHECK(NetworkOf("mpt-30b", "7168,48,64,,,").intermediate == 28672);
  CHECK(NetworkOf("megatron-8.3b", "3072,72,24,,,").intermediate == 12288);
  CHECK(NetworkOf("llama-2-7b", "4096,32,32,,,").intermediate == 11008);
}

TEST_CASE("rows of one model say its feed-forward for each other") {
  const auto table = [](const std::string& other) {
    return ParseDecoder(RowOf("llama-80b", "8192,80,64,,28672,131072") + "\n" +
                        RowOf("llama-80b", "8192,80,64,,,49152") + "\n" +
                        other);
  };
  const Table one = table("");
  REQUIRE(one.observations.size() == 2);
  CHECK(one.observations[1].workload.architecture.intermediate == 28672);
  const Table two =
      table(RowOf("llama-80b", "8192,80,64,,22016,131072") + "\n");
  CHECK(two.observations.size() == 2);
  CHECK(two.unused.size() == 1);
}

}  // namespace
}  // namespace trainfare::calibrate
