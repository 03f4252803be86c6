#pragma once

// A model as Hugging Face's config.json describes it.

#include <string>

#include "model/architecture.h"

namespace trainfare::hardware {

// Throws InputError "file:line:col: key: ..": a file that is cut short, a
// model_type that is not known, a key that is missing, has a value that these
// counts do not cover or that does not go with another's (model/validate.h), or
// is not understood. Nothing is guessed: a default is that of the type's own
// configuration class in Transformers. Of a model of images, too, the language
// model is read that is its text_config, and the name says so.
model::Architecture ReadModelConfig(const std::string& path);
// The same of the text of one; `path` stands for its file in messages.
model::Architecture ParseModelConfig(std::string text, const std::string& path);
// The text itself. Throws InputError where it cannot be read.
std::string ModelConfigText(const std::string& path);

}  // namespace trainfare::hardware
