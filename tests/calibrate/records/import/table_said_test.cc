#include "calibrate/records/import/table_said.h"

#include <doctest/doctest.h>

namespace trainfare::calibrate {
namespace {

TEST_CASE("a word that a cell denies is not said") {
  for (const char* denied : {"no flash attention",
                             "--no-flash-attention",
                             "no_flash_attention",
                             "disable_flash_attention",
                             "w/o flash attention",
                             "(w/o flash attention)",
                             "non-flash-attention",
                             "didn't use flash attention",
                             "without dropout or flash attention",
                             "flash attention (disabled)",
                             "flash attention: no",
                             "flash attention: n",
                             "flash attention=0",
                             "use_flash_attention_2=false",
                             "use_flash_attention_2: false",
                             "\"flash_attention\": null",
                             "flash-attention 2: off",
                             "flash attention not supported",
                             "flash attention is not enabled",
                             "flash attention kernels: none"}) {
    CAPTURE(denied);
    CHECK_FALSE(Says(denied, "flash attention"));
    CHECK_FALSE(SaysWhole(WordsApart(denied), "flash attention"));
  }
  for (const char* said : {"flash attention",
                           "flash_attention_2=true",
                           "no dropout; flash-attention",
                           "w/o lora, flash attention",
                           "flash attention, no dropout",
                           "flash attention 2",
                           "flash attention (no dropout)",
                           "flash attention 0.4",
                           "no lora with flash attention",
                           "flash attention; fused: false"}) {
    CAPTURE(said);
    CHECK(Says(said, "flash attention"));
  }
}

TEST_CASE("what joins words does not tell them apart") {
  CHECK(Says("paged_lion_8bit", "lion 8bit"));
  CHECK(Says("paged_lion_8bit", " lion"));
  CHECK_FALSE(Says("rebellion", " lion"));
  CHECK(Says(" fa2 ; x ", " fa2 "));
  CHECK_FALSE(Says(" fa2 : off ; x ", " fa2 "));
  CHECK_FALSE(Says("3bfa2c", " fa2 "));
  // A word of a longer name is denied with it.
  CHECK_FALSE(Says(" flash attn 2 false ", " flash "));
  CHECK_FALSE(SaysWhole(WordsApart("gradient_checkpointing: n"),
                        "gradient checkpointing"));
}

}  // namespace
}  // namespace trainfare::calibrate
