#pragma once

// Keys and values of other programs' settings in the place of ours.

#include <span>
#include <string_view>

namespace trainfare::hardware {

// What to write for the key of another program, such as Transformers'
// "gradient_accumulation_steps", in a map that has the keys `known`; empty:
// nothing is known of it there.
std::string_view InsteadOfKey(std::string_view key,
                              std::span<const std::string_view> known);
// The same for what other programs have as the value of a key of ours where it
// is no word: "nf4" as base_bits.
std::string_view InsteadOfValue(std::string_view key, std::string_view value);

}  // namespace trainfare::hardware
