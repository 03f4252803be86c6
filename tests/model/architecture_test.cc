#include "model/architecture.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/presets.h"
#include "model/validate.h"
#include "model/workload.h"

namespace trainfare::model {
namespace {

// Embeddings, blocks and pooler.
int64_t WithoutHead(const Architecture& a) {
  return TotalParameters(a) - HeadParameters(a);
}

}  // namespace

// docs/models/counts.md, "Parameters". BERT-base, h = 768, i = 3072, V = 30522:
//   embeddings  (30522 + 512 + 2) 768 + 2 x 768            = 23,837,184
//   a layer     4 (768^2 + 768) + 2 x 768                  =  2,363,904
//             + 2 x 768 x 3072 + 3072 + 768 + 2 x 768      =  4,723,968
//   12 layers                                              = 85,054,464
//   pooler      768^2 + 768                                =    590,592
TEST_CASE("BERT-base has 109,482,240 parameters with its pooler") {
  const Architecture& base = FindArchitecture("bert-base-uncased");
  CHECK(23'837'184 + 12 * (2'363'904 + 4'723'968) + 590'592 == 109'482'240);
  CHECK(WithoutHead(base) == 109'482'240);
  CHECK(HeadParameters(base) == 2 * 768 + 2);
  CHECK(TotalParameters(base) == 109'483'778);
}

// The thesis of published/s003 states 108,311,810 parameters in 201 tensors
// for bert-base-cased with two labels.
TEST_CASE("BERT-base, cased, as a published count has it") {
  const Architecture& cased = FindArchitecture("bert-base-cased");
  CHECK(TotalParameters(cased) == 108'311'810);
  CHECK(ParameterTensorCount(cased) == 201);
  CHECK(ParameterTensorsOf(cased).size() == 201);
}

// h = 1024, i = 4096: embeddings 31036 x 1024 + 2048 = 31,782,912; a layer
// 4 x 1,049,600 + 2048 + 2 x 4,194,304 + 5120 + 2048 = 12,596,224; pooler
// 1,049,600. 31,782,912 + 24 x 12,596,224 + 1,049,600 = 335,141,888.
TEST_CASE("BERT-large has 335,141,888 parameters with its pooler") {
  CHECK(WithoutHead(FindArchitecture("bert-large-uncased")) == 335'141'888);
}

// RoBERTa-base without a pooler: (50265 + 514 + 1) 768 + 2 x 768 + 85,054,464
// = 124,055,040 (124,645,632 as published, with one); its head is
// 590,592 + 1538. DistilBERT 66,362,880 and GPT-2 124,439,808 as published.
TEST_CASE("the other presets") {
  const Architecture& roberta = FindArchitecture("roberta-base");
  CHECK(WithoutHead(roberta) == 124'055'040);
  CHECK(TotalParameters(roberta) == 124'647'170);
  CHECK(WithoutHead(FindArchitecture("distilbert-base-uncased")) == 66'362'880);
  CHECK(TotalParameters(FindArchitecture("gpt2")) == 124'439'808);
  // 12 tensors a block, query, key and value in one; two tables, a last norm.
  CHECK(ParameterTensorCount(FindArchitecture("gpt2")) == 12 * 12 + 4);
  // 6 + 6 layers of 512, 8 heads, 2048; shared vocabulary of 37000:
  // 18,944,000 + 6 x 3,152,384 + 6 x 4,204,032 = 63,082,496.
  CHECK(TotalParameters(FindArchitecture("transformer-base")) == 63'082'496);
}

TEST_CASE("tensors and their counts agree") {
  for (const Architecture& preset : ArchitecturePresets()) {
    CAPTURE(preset.name);
    const int64_t blocks = preset.layers + preset.decoder_layers;
    int64_t elements = 0;
    int64_t block_matrices = 0;
    for (const ParameterTensor& tensor : ParameterTensorsOf(preset)) {
      elements += tensor.elements;
      CHECK(!tensor.module.empty());
      CHECK(tensor.layer >= 0);
      CHECK(tensor.layer <= blocks + 1);
      const bool of_block = tensor.layer > 0 && tensor.layer <= blocks;
      if (of_block && tensor.columns > 1) block_matrices += tensor.elements;
    }
    CHECK(elements == TotalParameters(preset));
    CHECK(block_matrices == BlockMatrixElements(preset));
    CHECK(static_cast<int64_t>(ParameterTensorsOf(preset).size()) ==
          ParameterTensorCount(preset));
  }
}

TEST_CASE("RoBERTa's positions begin at two") {
  CHECK(FindArchitecture("roberta-base").max_sequence_length() == 512);
  CHECK(!FindArchitecture("transformer-base").max_sequence_length());
}

TEST_CASE("a model is found however people spell it") {
  for (const auto& names : std::vector<std::pair<const char*, const char*>>{
           {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
           {"Meta-Llama-3-8B", "llama-3-8b"},
           {"Llama 3.3 70B", "llama-3.1-70b"},
           {"llama2-70b-chat-hf", "llama-2-70b"},
           {"huggyllama/llama-7b", "llama-7b"},
           {"Qwen/Qwen3-8B-Base", "qwen3-8b-base"},
           {"qwen3 30b a3b", "qwen3-30b-a3b"},
           {"mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1"},
           {"Mistral 7B v0.3", "mistral-7b"},
           {"google/gemma-2-9b-it", "gemma-2-9b"},
           {"GPT-2 XL", "gpt2-xl"},
           {"OPT 13B", "opt-13b"},
           {"facebook/opt-1.3b", "opt-1.3b"},
           {"stabilityai/stablelm-2-1_6b", "stablelm-2-1.6b"},
           {"google/flan-t5-xl", "t5-v1.1-xl"},
           {"deepseek-ai/DeepSeek-R1", "deepseek-v3"},
           {"BERT Large", "bert-large-uncased"}}) {
    CAPTURE(names.first);
    CHECK(FindArchitecture(names.first).name == names.second);
  }
  for (const Architecture& preset : ArchitecturePresets()) {
    CAPTURE(preset.name);
    CHECK(SpelledArchitecture(preset.name)->name == preset.name);
    CHECK(SpelledArchitecture("someone/" + preset.name)->name == preset.name);
  }
  // Other vocabularies, sizes and places are other models.
  for (const char* none : {"mistral-7b-v0.4",
                           "llama-3-9b",
                           "llama",
                           "bert",
                           "base",
                           "instruct",
                           "",
                           "/",
                           "./llama-3-8b",
                           "/models/llama-3-8b",
                           "a/b/llama-3-8b"}) {
    CAPTURE(none);
    CHECK(SpelledArchitecture(none) == nullptr);
  }
}

TEST_CASE("an unknown model names the nearest") {
  try {
    FindArchitecture("bert-bse-uncased");
    FAIL("expected an error");
  } catch (const InputError& error) {
    const std::string message = error.what();
    CHECK(message.find("unknown model \"bert-bse-uncased\"; did you mean "
                       "\"bert-base-uncased\"") == 0);
  }
}

TEST_CASE("only a table of positions ends") {
  for (const char* name : {"llama-2-7b", "falcon-7b", "bloom-7b1", "t5-base"}) {
    CAPTURE(name);
    const Architecture& a = FindArchitecture(name);
    CHECK_FALSE(a.longest_of_table());
    Workload w;
    w.architecture = a;
    w.sequence_length = 2 * a.max_sequence_length().value_or(4096);
    CHECK_NOTHROW(Validate(w));
  }
  Workload w;
  w.architecture = FindArchitecture("gpt2");
  CHECK(w.architecture.longest_of_table() == 1024);
  w.sequence_length = 1025;
  CHECK_THROWS_WITH_AS(Validate(w),
                       "sequence_length: expected at most 1024, the positions "
                       "of gpt2, got 1025",
                       InputError);
}

}  // namespace trainfare::model
