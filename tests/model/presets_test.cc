#include "model/presets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/architecture.h"
#include "model/error.h"
#include "model/preset_aliases.h"

namespace trainfare::model {

// Long because they are tables.
TEST_CASE(
    "repositories of models are the presets that they have the shape of") {
  for (const auto& names : std::vector<std::pair<const char*, const char*>>{
           {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
           {"meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"},
           {"meta-llama/Meta-Llama-3.1-70B-Instruct", "llama-3.1-70b"},
           {"meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b"},
           {"meta-llama/Llama-3.2-1B-Instruct", "llama-3.2-1b"},
           {"meta-llama/Llama-3.2-3B", "llama-3.2-3b"},
           {"meta-llama/Llama-3.1-405B-Instruct", "llama-3.1-405b"},
           {"meta-llama/Llama-2-7b-hf", "llama-2-7b"},
           {"meta-llama/Llama-2-13b-chat-hf", "llama-2-13b"},
           {"meta-llama/Llama-2-70b-chat-hf", "llama-2-70b"},
           {"meta-llama/CodeLlama-7b-Instruct-hf", "codellama-7b"},
           {"codellama/CodeLlama-13b-hf", "codellama-13b"},
           {"codellama/CodeLlama-34b-Instruct-hf", "codellama-34b"},
           {"huggyllama/llama-7b", "llama-7b"},
           {"huggyllama/llama-30b", "llama-30b"},
           {"huggyllama/llama-65b", "llama-65b"},
           {"NousResearch/Llama-2-7b-hf", "llama-2-7b"},
           {"NousResearch/Meta-Llama-3-8B", "llama-3-8b"},
           {"NousResearch/Hermes-3-Llama-3.1-8B", "llama-3.1-8b"},
           {"unsloth/Llama-3.2-1B-Instruct", "llama-3.2-1b"},
           {"unsloth/mistral-7b-v0.3", "mistral-7b"},
           {"meta-llama/Llama-Guard-3-8B", "llama-3.1-8b"},
           {"nvidia/Llama-3.1-Nemotron-70B-Instruct-HF", "llama-3.1-70b"},
           {"lmsys/vicuna-7b-v1.5", "llama-2-7b"},
           {"lmsys/vicuna-13b-v1.5", "llama-2-13b"},
           {"lmsys/vicuna-7b-v1.3", "vicuna-7b-v1.3"},
           {"lmsys/vicuna-33b-v1.3", "llama-30b"},
           {"openlm-research/open_llama_7b_v2", "open-llama-7b-v2"},
           {"openlm-research/open_llama_7b", "open-llama-7b"},
           {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"},
           {"TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T",
            "tinyllama-1.1b"},
           {"TinyLlama/TinyLlama_v1.1", "tinyllama-1.1b"},
           {"HuggingFaceTB/SmolLM2-1.7B-Instruct", "smollm2-1.7b"},
           {"HuggingFaceTB/SmolLM2-135M", "smollm2-135m"},
           {"HuggingFaceTB/SmolLM2-360M-Instruct", "smollm2-360m"},
           {"HuggingFaceTB/SmolLM-135M", "smollm-135m"},
           {"HuggingFaceTB/SmolLM3-3B", "smollm3-3b"},
           {"HuggingFaceTB/SmolLM3-3B-Base", "smollm3-3b"},
           {"mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1"},
           {"mistralai/Mistral-7B-Instruct-v0.1", "mistral-7b-v0.1"},
           {"mistralai/Mistral-7B-v0.3", "mistral-7b"},
           {"mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"},
           {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
           {"mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"},
           {"mistralai/Mixtral-8x22B-v0.1", "mixtral-8x22b"},
           {"mistralai/Mixtral-8x22B-v0.3", "mixtral-8x22b-v0.3"},
           {"mistralai/Mixtral-8x22B-Instruct-v0.1", "mixtral-8x22b-v0.3"},
           {"mistral-community/Mixtral-8x22B-Instruct-v0.3",
            "mixtral-8x22b-v0.3"},
           {"mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo-12b"},
           {"mistralai/Mistral-Nemo-Base-2407", "mistral-nemo-12b"},
           {"mistralai/Ministral-8B-Instruct-2410", "ministral-8b"},
           {"mistralai/Mistral-Small-24B-Instruct-2501", "mistral-small-24b"},
           {"mistralai/Mistral-Small-24B-Base-2501", "mistral-small-24b"},
           {"mistralai/Mistral-Large-Instruct-2407", "mistral-large-123b"},
           {"mistralai/Mistral-Large-Instruct-2411", "mistral-large-123b"},
           {"mistralai/Codestral-22B-v0.1", "codestral-22b"},
           {"mistralai/Mathstral-7B-v0.1", "mistral-7b"},
           {"HuggingFaceH4/zephyr-7b-beta", "mistral-7b-v0.1"},
           {"HuggingFaceH4/zephyr-7b-alpha", "mistral-7b-v0.1"},
           {"Qwen/Qwen1.5-7B-Chat", "qwen1.5-7b"},
           {"Qwen/Qwen1.5-0.5B", "qwen1.5-0.5b"},
           {"Qwen/Qwen1.5-MoE-A2.7B-Chat", "qwen1.5-moe-a2.7b"},
           {"Qwen/Qwen2-7B-Instruct", "qwen2.5-7b"},
           {"Qwen/Qwen2-0.5B", "qwen2.5-0.5b"},
           {"Qwen/Qwen2.5-0.5B-Instruct", "qwen2.5-0.5b"},
           {"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
           {"Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b"},
           {"Qwen/Qwen2.5-Coder-7B-Instruct", "qwen2.5-coder-7b"},
           {"Qwen/Qwen2.5-Coder-1.5B", "qwen2.5-coder-1.5b"},
           {"Qwen/Qwen2.5-Math-1.5B", "qwen2.5-math-1.5b"},
           {"Qwen/Qwen2.5-Math-7B-Instruct", "qwen2.5-math-7b"},
           {"Qwen/QwQ-32B", "qwen2.5-32b"},
           {"Qwen/QwQ-32B-Preview", "qwq-32b-preview"},
           {"Qwen/Qwen3-0.6B", "qwen3-0.6b"},
           {"Qwen/Qwen3-1.7B", "qwen3-1.7b"},
           {"Qwen/Qwen3-8B-Base", "qwen3-8b-base"},
           {"Qwen/Qwen3-32B", "qwen3-32b"},
           {"Qwen/Qwen3-4B-Instruct-2507", "qwen3-4b-2507"},
           {"Qwen/Qwen3-4B-Thinking-2507", "qwen3-4b-thinking-2507"},
           {"Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b-2507"},
           {"Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b-2507"},
           {"Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3-coder-30b-a3b"},
           {"Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3-coder-480b-a35b"},
           {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
            "deepseek-r1-distill-qwen-1.5b"},
           {"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2.5-7b"},
           {"deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", "qwen2.5-14b"},
           {"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "qwen2.5-32b"},
           {"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama-3.1-8b"},
           {"deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.1-70b"},
           {"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B",
            "deepseek-r1-0528-qwen3-8b"},
           {"deepseek-ai/DeepSeek-R1", "deepseek-v3"},
           {"deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"},
           {"deepseek-ai/DeepSeek-V3-Base", "deepseek-v3"},
           {"meta-llama/Llama-4-Scout-17B-16E", "llama-4-scout-17b-16e"},
           {"meta-llama/Llama-4-Scout-17B-16E-Instruct",
            "llama-4-scout-17b-16e"},
           {"llama4-scout", "llama-4-scout-17b-16e"},
           {"meta-llama/Llama-4-Maverick-17B-128E-Instruct",
            "llama-4-maverick-17b-128e"},
           {"Llama 4 Maverick", "llama-4-maverick-17b-128e"},
           {"microsoft/Phi-3.5-MoE-instruct", "phi-3.5-moe"},
           {"databricks/dbrx-base", "dbrx"},
           {"databricks/dbrx-instruct", "dbrx"},
           {"deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"},
           {"deepseek-ai/DeepSeek-V3.1-Base", "deepseek-v3"},
           {"deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-v2-lite"},
           {"deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", "deepseek-v2-lite"},
           {"deepseek-ai/DeepSeek-Coder-V2-Instruct", "deepseek-v2"},
           {"deepseek-ai/deepseek-llm-7b-base", "deepseek-llm-7b"},
           {"deepseek-ai/deepseek-llm-67b-chat", "deepseek-llm-67b"},
           {"deepseek-ai/deepseek-math-7b-instruct", "deepseek-llm-7b"},
           {"google/gemma-2b", "gemma-2b"},
           {"google/gemma-7b-it", "gemma-7b"},
           {"google/gemma-1.1-2b-it", "gemma-2b"},
           {"google/codegemma-7b-it", "gemma-7b"},
           {"google/gemma-2-2b-it", "gemma-2-2b"},
           {"google/gemma-2-9b-it", "gemma-2-9b"},
           {"google/gemma-2-27b-it", "gemma-2-27b"},
           {"google/gemma-3-270m-it", "gemma-3-270m"},
           {"google/gemma-3-1b-pt", "gemma-3-1b"},
           {"google/gemma-3-4b-it", "gemma-3-4b"},
           {"google/gemma-3-27b-it", "gemma-3-27b"},
           {"microsoft/phi-1", "phi-1.5"},
           {"microsoft/phi-1_5", "phi-1.5"},
           {"microsoft/phi-2", "phi-2"},
           {"microsoft/Phi-3-mini-4k-instruct", "phi-3-mini"},
           {"microsoft/Phi-3-mini-128k-instruct", "phi-3.5-mini"},
           {"microsoft/Phi-3.5-mini-instruct", "phi-3.5-mini"},
           {"microsoft/Phi-3-medium-4k-instruct", "phi-3-medium"},
           {"microsoft/phi-4", "phi-4"},
           {"microsoft/Phi-4-mini-instruct", "phi-4-mini"},
           {"microsoft/Phi-4-reasoning", "phi-4-reasoning"},
           {"allenai/OLMo-1B-hf", "olmo-1b"},
           {"allenai/OLMo-7B-hf", "olmo-7b"},
           {"allenai/OLMo-2-0425-1B", "olmo-2-1b"},
           {"allenai/OLMo-2-1124-7B", "olmo-2-7b"},
           {"allenai/OLMo-2-1124-7B-Instruct", "olmo-2-7b"},
           {"allenai/OLMo-2-1124-13B-SFT", "olmo-2-13b"},
           {"allenai/OLMo-2-0325-32B-Instruct", "olmo-2-32b"},
           {"allenai/OLMoE-1B-7B-0924-Instruct", "olmoe-1b-7b"},
           {"allenai/OLMoE-1B-7B-0125", "olmoe-1b-7b"},
           {"EleutherAI/pythia-70m", "pythia-70m"},
           {"EleutherAI/pythia-160m-deduped", "pythia-160m"},
           {"EleutherAI/pythia-410m-deduped", "pythia-410m"},
           {"EleutherAI/pythia-1b-deduped", "pythia-1b"},
           {"EleutherAI/pythia-1.4b-deduped", "pythia-1.4b"},
           {"EleutherAI/pythia-2.8b-deduped", "pythia-2.8b"},
           {"EleutherAI/pythia-6.9b-deduped", "pythia-6.9b"},
           {"EleutherAI/pythia-12b-deduped", "pythia-12b"},
           {"EleutherAI/gpt-j-6b", "gpt-j-6b"},
           {"EleutherAI/gpt-neox-20b", "gpt-neox-20b"},
           {"bigscience/bloom", "bloom-176b"},
           {"bigscience/bloom-560m", "bloom-560m"},
           {"bigscience/bloomz-7b1", "bloom-7b1"},
           {"bigcode/starcoder", "starcoder"},
           {"bigcode/starcoderbase", "starcoder"},
           {"bigcode/starcoder2-3b", "starcoder2-3b"},
           {"bigcode/starcoder2-7b", "starcoder2-7b"},
           {"tiiuae/falcon-7b", "falcon-7b"},
           {"tiiuae/falcon-7b-instruct", "falcon-7b"},
           {"tiiuae/falcon-40b-instruct", "falcon-40b"},
           {"mosaicml/mpt-7b", "mpt-7b"},
           {"mosaicml/mpt-7b-instruct", "mpt-7b"},
           {"facebook/opt-125m", "opt-125m"},
           {"facebook/opt-350m", "opt-350m"},
           {"facebook/opt-1.3b", "opt-1.3b"},
           {"facebook/opt-13b", "opt-13b"},
           {"01-ai/Yi-6B", "yi-6b"},
           {"01-ai/Yi-6B-Chat", "yi-6b"},
           {"01-ai/Yi-34B-Chat", "yi-34b"},
           {"01-ai/Yi-9B", "yi-1.5-9b"},
           {"01-ai/Yi-1.5-9B-Chat", "yi-1.5-9b"},
           {"01-ai/Yi-1.5-34B-Chat", "yi-34b"},
           {"upstage/SOLAR-10.7B-v1.0", "solar-10.7b"},
           {"upstage/SOLAR-10.7B-Instruct-v1.0", "solar-10.7b"},
           {"ibm-granite/granite-3.1-2b-instruct", "granite-3.1-2b"},
           {"ibm-granite/granite-3.1-8b-base", "granite-3.1-8b"},
           {"ibm-granite/granite-3.0-2b-instruct", "granite-3.0-2b"},
           {"stabilityai/stablelm-3b-4e1t", "stablelm-3b"},
           {"stabilityai/stablelm-2-1_6b", "stablelm-2-1.6b"},
           {"stabilityai/stablelm-2-1_6b-chat", "stablelm-2-1.6b"},
           {"stabilityai/stablelm-2-zephyr-1_6b", "stablelm-2-1.6b"},
           {"stabilityai/stablelm-zephyr-3b", "stablelm-3b"},
           {"zai-org/glm-4-9b-hf", "glm-4-9b"},
           {"zai-org/glm-4-9b-chat-hf", "glm-4-9b"},
           {"zai-org/GLM-4-9B-0414", "glm-4-9b-0414"},
           {"zai-org/GLM-Z1-32B-0414", "glm-4-32b-0414"},
           {"zai-org/chatglm3-6b", "chatglm3-6b"},
           {"zai-org/chatglm3-6b-base", "chatglm3-6b"},
           {"zai-org/GLM-4.5", "glm-4.5"},
           {"zai-org/GLM-4.5-Air-Base", "glm-4.5-air"},
           {"moonshotai/Kimi-K2-Instruct", "kimi-k2"},
           {"moonshotai/Kimi-K2-Instruct-0905", "kimi-k2-0905"},
           {"moonshotai/Kimi-K2-Base", "kimi-k2"},
           {"mistralai/Ministral-3-3B-Instruct-2512", "ministral-3-3b"},
           {"mistralai/Ministral-3-8B-Base-2512", "ministral-3-8b"},
           {"mistralai/Ministral-3-14B-Reasoning-2512", "ministral-3-14b"},
           {"mistralai/Mistral-Small-3.2-24B-Instruct-2506",
            "mistral-small-3.2-24b-2506"},
           {"mistralai/Mistral-Small-4-119B-2603", "mistral-small-4-119b"},
           {"MiniMaxAI/MiniMax-M2", "minimax-m2"},
           {"MiniMaxAI/MiniMax-M2.7", "minimax-m2.7"},
           {"zai-org/GLM-4.7-Flash", "glm-4.7-flash"},
           {"zai-org/GLM-4.7", "glm-4.7"},
           {"upstage/Solar-Open-100B", "solar-open-100b"},
           {"LGAI-EXAONE/K-EXAONE-236B-A23B", "k-exaone-236b-a23b"},
           {"rednote-hilab/dots.llm1.inst", "dots.llm1"},
           {"tencent/Hunyuan-A13B-Instruct", "hunyuan-a13b"},
           {"baidu/ERNIE-4.5-300B-A47B-PT", "ernie-4.5-300b-a47b"},
           {"inclusionAI/Ling-mini-2.0", "ling-mini-2.0"},
           {"tencent/Hy3-preview", "hy3"},
           {"JetBrains/Mellum2-12B-A2.5B-Base", "mellum2-12b-a2.5b"},
           {"tencent/Youtu-LLM-2B-Base", "youtu-llm-2b"},
           {"naver-hyperclovax/HyperCLOVAX-SEED-Think-14B",
            "hyperclovax-seed-think-14b"},
           {"google/vaultgemma-1b", "vaultgemma-1b"},
           {"xai-org/grok-1", "grok-1"},
           {"nvidia/Nemotron-4-340B-Instruct", "nemotron-4-340b"},
           {"nvidia/nemotron-3-8b-base-4k", "nemotron-3-8b"},
           {"nemotron4-15b", "nemotron-4-15b"},
           {"nemotron-8b", "nemotron-3-8b"},
           {"nvidia/Nemotron-H-56B-Base-8K", "nemotron-h-56b"},
           {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
            "nemotron-3-nano-30b-a3b"},
           {"nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16",
            "nemotron-3.5-lightning-30b-a3b"},
           {"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16",
            "nemotron-3-super-120b-a12b"},
           {"nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
            "nemotron-3-ultra-550b-a55b"},
           {"ibm-granite/granite-4.0-h-tiny-base", "granite-4.0-h-tiny"},
           {"ibm-ai-platform/Bamba-9B-v2", "bamba-9b"},
           {"Qwen/Qwen3-Next-80B-A3B-Instruct", "qwen3-next-80b-a3b"},
           {"Qwen/Qwen3-Next-80B-A3B-Thinking", "qwen3-next-80b-a3b"},
           {"Qwen/Qwen3.5-9B-Base", "qwen3.5-9b"},
           {"Qwen/Qwen3.5-397B-A17B", "qwen3.5-397b-a17b"},
           {"unsloth/Qwen3.6-35B-A3B", "qwen3.5-35b-a3b"},
           {"LiquidAI/LFM2-1.2B", "lfm2-1.2b"},
           {"LiquidAI/LFM2.5-1.2B-Instruct", "lfm2-1.2b"},
           {"LiquidAI/LFM2.5-350M-Base", "lfm2-350m"},
           {"LiquidAI/LFM2-8B-A1B", "lfm2-8b-a1b"},
           {"LiquidAI/LFM2-24B-A2B", "lfm2-24b-a2b"},
           {"swiss-ai/Apertus-8B-Instruct-2509", "apertus-8b"},
           {"swiss-ai/Apertus-70B-2509", "apertus-70b"},
           {"arcee-ai/Trinity-Nano-Preview", "trinity-nano"},
           {"arcee-ai/Trinity-Mini", "trinity-mini"},
           {"arcee-ai/Trinity-Large-Thinking", "trinity-large"},
           {"nvidia/Minitron-4B-Base", "minitron-4b"},
           {"nvidia/Minitron-8B-Base", "minitron-8b"},
           {"nvidia/Nemotron-Mini-4B-Instruct", "minitron-4b"},
           {"nvidia/Llama-3.1-Minitron-4B-Width-Base",
            "llama-3.1-minitron-4b-width"},
           {"nvidia/Mistral-NeMo-Minitron-8B-Base", "mistral-nemo-minitron-8b"},
           {"mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b-v0.2"},
           {"CohereLabs/c4ai-command-r-v01", "command-r-v01"},
           {"CohereForAI/c4ai-command-r-08-2024", "command-r-08-2024"},
           {"CohereForAI/c4ai-command-r-plus", "command-r-plus"},
           {"CohereLabs/c4ai-command-r7b-12-2024", "command-r7b-12-2024"},
           {"CohereLabs/c4ai-command-a-03-2025", "command-a-03-2025"},
           {"CohereLabs/aya-expanse-8b", "aya-expanse-8b"},
           {"CohereLabs/aya-expanse-32b", "aya-expanse-32b"},
           {"CohereForAI/aya-23-8B", "aya-expanse-8b"},
           {"allenai/Olmo-3-1025-7B", "olmo-3-7b"},
           {"allenai/Olmo-3-7B-Instruct", "olmo-3-7b"},
           {"allenai/Olmo-3-7B-Think", "olmo-3-7b"},
           {"allenai/Olmo-3-1125-32B", "olmo-3-32b"},
           {"ByteDance-Seed/Seed-OSS-36B-Instruct", "seed-oss-36b"},
           {"LGAI-EXAONE/EXAONE-4.0-32B", "exaone-4.0-32b"},
           {"LGAI-EXAONE/EXAONE-4.0-1.2B", "exaone-4.0-1.2b"},
           {"tencent/Hunyuan-7B-Instruct", "hunyuan-7b"},
           {"baidu/ERNIE-4.5-0.3B-PT", "ernie-4.5-0.3b"},
           {"baidu/ERNIE-4.5-21B-A3B-PT", "ernie-4.5-21b-a3b"},
           {"arcee-ai/AFM-4.5B", "afm-4.5b"},
           {"ibm-granite/granite-3.3-2b-instruct", "granite-3.3-2b"},
           {"openai/gpt-oss-20b", "gpt-oss-20b"},
           {"openai/gpt-oss-120b", "gpt-oss-120b"},
           {"openai-community/gpt2", "gpt2"},
           {"openai-community/gpt2-medium", "gpt2-medium"},
           {"openai-community/gpt2-xl", "gpt2-xl"},
           {"distilbert/distilgpt2", "distilgpt2"},
           {"microsoft/DialoGPT-medium", "gpt2-medium"},
           {"google-bert/bert-base-uncased", "bert-base-uncased"},
           {"google-bert/bert-base-cased", "bert-base-cased"},
           {"google-bert/bert-base-multilingual-cased",
            "bert-base-multilingual-cased"},
           {"google-bert/bert-large-uncased", "bert-large-uncased"},
           {"google-bert/bert-large-uncased-whole-word-masking",
            "bert-large-uncased"},
           {"google/bert_uncased_L-2_H-128_A-2", "bert-tiny"},
           {"prajjwal1/bert-tiny", "bert-tiny"},
           {"prajjwal1/bert-medium", "bert-medium"},
           {"distilbert/distilbert-base-uncased", "distilbert-base-uncased"},
           {"distilbert/distilbert-base-cased", "distilbert-base-cased"},
           {"distilbert/distilbert-base-uncased-finetuned-sst-2-english",
            "distilbert-base-uncased"},
           {"FacebookAI/roberta-base", "roberta-base"},
           {"FacebookAI/roberta-large", "roberta-large"},
           {"FacebookAI/xlm-roberta-base", "xlm-roberta-base"},
           {"FacebookAI/xlm-roberta-large", "xlm-roberta-large"},
           {"distilbert/distilroberta-base", "distilroberta-base"},
           {"cardiffnlp/twitter-roberta-base-sentiment-latest", "roberta-base"},
           {"albert/albert-base-v2", "albert-base-v2"},
           {"albert-xxlarge-v1", "albert-xxlarge-v2"},
           {"google/electra-small-discriminator", "electra-small"},
           {"google/electra-base-discriminator", "electra-base"},
           {"answerdotai/ModernBERT-base", "modernbert-base"},
           {"answerdotai/ModernBERT-large", "modernbert-large"},
           {"Alibaba-NLP/gte-modernbert-base", "modernbert-base"},
           {"jhu-clsp/ettin-encoder-17m", "ettin-encoder-17m"},
           {"jhu-clsp/ettin-encoder-150m", "ettin-encoder-150m"},
           {"jhu-clsp/mmBERT-base", "mmbert-base"},
           {"nomic-ai/nomic-embed-text-v1.5", "nomic-embed-text-v1.5"},
           {"sentence-transformers/all-MiniLM-L12-v2", "minilm-l12-h384"},
           {"BAAI/bge-small-en-v1.5", "minilm-l12-h384"},
           {"BAAI/bge-m3", "bge-m3"},
           {"almanach/camembert-base", "camembert-base"},
           {"sentence-transformers/all-MiniLM-L6-v2", "minilm-l6-h384"},
           {"cross-encoder/ms-marco-MiniLM-L-6-v2", "minilm-l6-h384"},
           {"nreimers/MiniLM-L6-H384-uncased", "minilm-l6-h384"},
           {"BAAI/bge-base-en-v1.5", "bert-base-uncased"},
           {"BAAI/bge-large-en-v1.5", "bert-large-uncased"},
           {"intfloat/e5-base-v2", "bert-base-uncased"},
           {"intfloat/multilingual-e5-large", "xlm-roberta-large"},
           {"google-t5/t5-small", "t5-small"},
           {"google-t5/t5-base", "t5-base"},
           {"google-t5/t5-3b", "t5-3b"},
           {"google/t5-v1_1-base", "t5-v1.1-base"},
           {"google/flan-t5-base", "t5-v1.1-base"},
           {"google/flan-t5-xxl", "t5-v1.1-xxl"},
           {"google/mt5-base", "mt5-base"},
           {"facebook/bart-base", "bart-base"},
           {"facebook/bart-large", "bart-large"},
           {"facebook/bart-large-mnli", "bart-large"},
           {"dmis-lab/biobert-v1.1", "bert-base-cased"},
           {"opt-1-3b", "opt-1.3b"},
           {"opt_1_3b", "opt-1.3b"},
           {"gemma 2 2b", "gemma-2-2b"},
           {"llama31-8b", "llama-3.1-8b"},
           {"llama3-1-8b-instruct", "llama-3.1-8b"},
           {"meta.llama3-1-8b", "llama-3.1-8b"},
           {"llama3.1:8b", "llama-3.1-8b"},
           {"llama_3_8b", "llama-3-8b"},
           {"llama_3_1_8b", "llama-3.1-8b"},
           {"qwen25-7b", "qwen2.5-7b"},
           {"qwen2.5:7b-instruct", "qwen2.5-7b"},
           {"Llama 3.3 70B", "llama-3.1-70b"},
           {"GPT-2 XL", "gpt2-xl"},
           {"BERT Large", "bert-large-uncased"}}) {
    CAPTURE(names.first);
    const Architecture* found = SpelledArchitecture(names.first);
    REQUIRE(found != nullptr);
    CHECK(found->name == names.second);
  }
}

// Other vocabularies, tied logits, windows and sizes, and what a name leaves
// open: a size without its point is no other's.
TEST_CASE("a model of another shape is no preset") {
  for (const char* name : {"codellama/CodeLlama-7b-Python-hf",
                           "meta-llama/Llama-3.2-11B-Vision",
                           "openlm-research/open_llama_3b",
                           "mistralai/Mistral-Small-Instruct-2409",
                           "HuggingFaceH4/zephyr-7b-gemma-v0.1",
                           "Qwen/Qwen1.5-32B",
                           "Qwen/Qwen2-57B-A14B",
                           "Qwen/Qwen2.5-7B-Instruct-1M",
                           "Qwen/Qwen2.5-VL-7B-Instruct",
                           "Qwen/Qwen3-30B-A3B-Instruct-2507-FP8",
                           "Qwen/Qwen3.8-Flash-Next",
                           "Qwen/Qwen3-Embedding-0.6B",
                           "Qwen/Qwen3-VL-8B-Instruct",
                           "deepseek-ai/DeepSeek-V3.2-Exp",
                           "deepseek-ai/deepseek-coder-6.7b-instruct",
                           "deepseek-ai/deepseek-moe-16b-base",
                           "google/gemma-3n-E2B-it",
                           "google/gemma-2-2b-jpn-it",
                           "google/recurrentgemma-2b",
                           "microsoft/Phi-3-small-8k-instruct",
                           "microsoft/Phi-4-multimodal-instruct",
                           "allenai/OLMo-7B-0724-hf",
                           "nvidia/Nemotron-H-4B-Base-8K",
                           "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
                           "swiss-ai/Apertus-v1.5-8B",
                           "EleutherAI/pythia-14m",
                           "EleutherAI/gpt-neo-1.3B",
                           "EleutherAI/gpt-neo-2.7B",
                           "bigcode/starcoderbase-1b",
                           "bigcode/starcoder2-15b",
                           "tiiuae/Falcon3-7B-Base",
                           "tiiuae/falcon-rw-1b",
                           "mosaicml/mpt-30b",
                           "mosaicml/mpt-7b-storywriter",
                           "facebook/opt-iml-1.3b",
                           "01-ai/Yi-34B-200K",
                           "stabilityai/stablelm-2-12b",
                           "openai-community/openai-gpt",
                           "google-bert/bert-base-multilingual-uncased",
                           "google-bert/bert-base-chinese",
                           "klue/bert-base",
                           "klue/roberta-base",
                           "google-bert/bert-base-german-cased",
                           "Geotrend/bert-base-it-cased",
                           "Geotrend/bert-base-pt-cased",
                           "dbmdz/bert-base-italian-cased",
                           "distilbert/distilbert-base-multilingual-cased",
                           "FacebookAI/roberta-large-mnli",
                           "microsoft/deberta-v3-base",
                           "google/electra-base-generator",
                           "sentence-transformers/all-mpnet-base-v2",
                           "mistralai/Devstral-2-123B-Instruct-2512",
                           "MiniMaxAI/MiniMax-M3",
                           "zai-org/GLM-5",
                           "google/byt5-base",
                           "google/t5-base-lm-adapt",
                           "facebook/bart-large-cnn",
                           "facebook/mbart-large-50",
                           "allenai/scibert_scivocab_uncased",
                           "qwen3-17b",
                           "Qwen3.1-7B",
                           "opt-27b",
                           "pythia-14b",
                           "gemma-22b",
                           "llama-27b",
                           "llama",
                           "bert",
                           "gemma",
                           "it"}) {
    CAPTURE(name);
    CHECK(SpelledArchitecture(name) == nullptr);
  }
}

TEST_CASE("aliases are names of presets, each of one") {
  std::vector<std::string_view> names;
  for (const Architecture& preset : ArchitecturePresets()) {
    names.push_back(preset.name);
  }
  for (const PresetAlias& alias : PresetAliases()) {
    CAPTURE(alias.name);
    names.push_back(alias.name);
    const auto found = TryFindArchitecture(alias.name);
    REQUIRE(found);
    CHECK(SpelledArchitecture("someone/" + std::string(alias.name))->name ==
          found->name);
    CHECK(TotalParameters(*found) ==
          TotalParameters(FindArchitecture(alias.preset)));
    const auto aliases = AliasesOf(alias.preset);
    // One of other lengths is a model of its own.
    const bool is_listed =
        std::find(aliases.begin(), aliases.end(), alias.name) != aliases.end();
    CHECK(is_listed == (alias.positions == 0));
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(AliasesOf("bart-base").empty());
  CHECK(CheckpointsOfOtherLengths().size() ==
        static_cast<size_t>(std::count_if(
            PresetAliases().begin(),
            PresetAliases().end(),
            [](const PresetAlias& alias) { return alias.positions > 0; })));
}

TEST_CASE("a checkpoint of other lengths has them, under its own name") {
  const Architecture later = FindArchitecture("Qwen/Qwen3-4B-Instruct-2507");
  CHECK(later.name == "qwen3-4b-2507");
  CHECK(later.max_sequence_length() == 262144);
  CHECK(FindArchitecture("Qwen/Qwen3-4B").max_sequence_length() == 40960);
}

// Its logits are not tied as those of the model that it was made from are.
TEST_CASE("the smallest distillation of R1 is a model of its own") {
  const auto count = [](const char* name) {
    return TotalParameters(FindArchitecture(name));
  };
  CHECK(count("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B") ==
        count("qwen2.5-1.5b") + int64_t{151936} * 1536);
}

TEST_CASE("an unknown model's message compares its last part alone") {
  const auto message = [](const char* name) {
    try {
      FindArchitecture(name);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("found");
  };
  const std::string rest = " see trainfare list models";
  CHECK(message("mistralai/Mistral-7B-Instruct-v0.5") ==
        "unknown model \"mistralai/Mistral-7B-Instruct-v0.5\"; did you mean "
        "\"mistral-7b-v0.1\", \"mistral-7b-v0.2\" or \"mistral-7b-v0.3\"?" +
            rest);
  CHECK(message("some-organisation-of-models/bert-tiniest") ==
        "unknown model \"some-organisation-of-models/bert-tiniest\"; did you "
        "mean \"bert-mini\" or \"bert-tiny\"?" +
            rest);
  CHECK(message("zzzzzzzzzzzz") == "unknown model \"zzzzzzzzzzzz\";" + rest);
}

TEST_CASE("repacked and quantised uploads are their models") {
  for (const auto& names : std::vector<std::pair<const char*, const char*>>{
           {"unsloth/llama-3-8b-bnb-4bit", "llama-3-8b"},
           {"unsloth/Meta-Llama-3.1-8B-unsloth-bnb-4bit", "llama-3.1-8b"},
           {"TheBloke/Llama-2-13B-fp16", "llama-2-13b"},
           {"TheBloke/Llama-2-7B-Chat-GPTQ", "llama-2-7b"},
           {"TheBloke/Llama-2-70B-AWQ", "llama-2-70b"},
           {"unsloth/Meta-Llama-3.1-8B-bnb-4bit", "llama-3.1-8b"},
           {"Qwen/Qwen3-8B-AWQ", "qwen3-8b"},
           {"bartowski/Llama-3.2-1B-Instruct-GGUF", "llama-3.2-1b"},
           {"nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
            "nemotron-3-super-120b-a12b"},
           {"gpt2-124M", "gpt2"},
           {"gpt2-355M", "gpt2-medium"},
           {"gpt2-774M", "gpt2-large"},
           {"gpt2-1.5B", "gpt2-xl"},
           {"bigscience/T0_3B", "t5-v1.1-xl"},
           {"bigscience/T0pp", "t5-v1.1-xxl"}}) {
    CAPTURE(names.first);
    CHECK(FindArchitecture(names.first).name == names.second);
  }
  CHECK(BitsInName("unsloth/llama-3-8b-bnb-4bit") == 4);
  CHECK(BitsInName("x/y-bnb-8bit") == 8);
  CHECK(BitsInName("TheBloke/Llama-2-7B-Chat-GPTQ") == 4);
  CHECK(BitsInName("TheBloke/Llama-2-13B-fp16") == 0);
  CHECK(BitsInName("meta-llama/Llama-3.1-8B") == 0);
}

TEST_CASE("a family's name has its members suggested") {
  const auto message = [](const char* name) -> std::string {
    try {
      FindArchitecture(name);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("llama3").starts_with(
      "unknown model \"llama3\"; did you mean \"llama-3-8b\", "));
  CHECK(message("llama3").find("llama-30b") == std::string::npos);
  CHECK(message("phi3").find("\"phi-3-mini\"") != std::string::npos);
  CHECK(message("gemma2").find("gemma-2-") != std::string::npos);
  // The spelling is near, the blocks are not.
  CHECK(message("microsoft/deberta-v3-base") ==
        "unknown model \"microsoft/deberta-v3-base\"; see trainfare list "
        "models");
  CHECK(message("robertta-base").find("\"roberta-base\"") != std::string::npos);
}

TEST_CASE("a model that reads pictures or sound has no neighbour suggested") {
  for (const char* name :
       {"openai/whisper-large-v3", "qwen2-vl-7b", "vit-base", "llava-1.5-7b"}) {
    CAPTURE(name);
    CHECK(ArchitecturesMeant(name) == "; models of text alone are counted");
  }
  CHECK(ArchitecturesMeant("bert-bse") != "; models of text alone are counted");
}

TEST_CASE("Phi-3.5 mini is Phi-3 mini that sees all of longer texts") {
  const Architecture& short_one = FindArchitecture("phi-3-mini");
  const Architecture& long_one = FindArchitecture("phi-3.5-mini");
  CHECK(TotalParameters(long_one) == TotalParameters(short_one));
  CHECK(short_one.windowed_layers == 32);
  CHECK(long_one.windowed_layers == 0);
  CHECK(long_one.positions == 131'072);
}

}  // namespace trainfare::model
