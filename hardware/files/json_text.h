#pragma once

// The one way in and out for JSON, ours and other people's.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "hardware/files/json_place.h"

namespace trainfare::hardware {

// Throws InputError "file:line:col: .." for what is not one JSON value in
// UTF-8, for a key that stands twice in an object, a number beyond double, and
// for lists and objects nested deeper than any of ours (whose own printing
// would overflow the stack). `line` is of the first character where `text` is a
// line of a file; 0: `text` is the whole file, and lines are counted.
nlohmann::json ParseJson(std::string_view text,
                         const std::string& file,
                         int line = 0);

// Where the value at `path` ("rope_scaling.factor", "layer_types[3]", "" for
// all of it) begins in `text`; nullopt where there is none. A value does not
// know its place: this is a pass over the text that it was parsed from, for a
// message.
std::optional<JsonPlace> FindInJson(std::string_view text,
                                    std::string_view path);

// Also for bytes that are no UTF-8, each of which becomes U+FFFD, so that a
// name in some other encoding never costs the answer. Lines and two blanks a
// level with kIndented. Throws InputError that names the place of a number
// which is not finite: JSON has none, and no answer is one.
enum class JsonLayout { kOneLine, kIndented };
std::string WriteJson(const nlohmann::ordered_json& value,
                      JsonLayout layout = JsonLayout::kOneLine);
std::string WriteJson(const nlohmann::json& value,
                      JsonLayout layout = JsonLayout::kOneLine);

// `value` on one line, cut to what a message can bear.
std::string ShownJson(const nlohmann::json& value);

}  // namespace trainfare::hardware
