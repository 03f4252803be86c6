#pragma once

// The network that a row of a table is of, by its name and its dimensions.

#include <map>
#include <set>
#include <string>

#include "calibrate/records/import/table_row.h"
#include "hardware/files/csv_file.h"
#include "model/architecture.h"

namespace trainfare::calibrate {

// Throws Unused with the reason where it is none that is counted, InputError
// where its dimensions are not those of its name.
model::Architecture ArchitectureOf(const TableRow& row);

// Widths of feed-forwards that rows of one model say in a column `intermediate`
// and others of them leave out.
class StatedWidths {
 public:
  explicit StatedWidths(const hardware::CsvFile& csv);
  // The row with what all others of its model, width and depth say.
  hardware::CsvRow Fill(hardware::CsvRow row) const;

 private:
  std::string ModelOf(const hardware::CsvRow& row) const;

  const hardware::CsvFile& csv_;
  std::map<std::string, std::set<std::string>> widths_;  // of a model
};

}  // namespace trainfare::calibrate
