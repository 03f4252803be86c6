#pragma once

// Which columns of a table are read, and what those mean that are not.

#include <string>
#include <string_view>
#include <vector>

#include "hardware/files/csv_file.h"

namespace trainfare::calibrate {

// Columns that say something and that nothing reads, but for those that are of
// no matter to a step: `lora_r (lora_rank?)`.
std::vector<std::string> UnreadColumns(const hardware::CsvFile& csv);

// "; torch_compile=True" of each column of a row whose name and value are words
// of `stack_notes`, and the same of `notes`.
struct MoreWords {
  std::string stack;
  std::string notes;
};
MoreWords MoreWordsOf(const hardware::CsvFile& csv,
                      const hardware::CsvRow& row);

// `; is "sequence_length" meant?` of a column that is missing, for the end of a
// message; empty where no column here has a name of it.
std::string ColumnMeant(const hardware::CsvFile& csv, std::string_view missing);

}  // namespace trainfare::calibrate
