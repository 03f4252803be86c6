#pragma once

// The files of a calibration beside its fit: the records that it goes on from,
// which lie apart until the fit is made.

#include <string>

namespace trainfare::calibrate::internal {

class SessionFiles {
 public:
  explicit SessionFiles(const std::string& fit_path);

  const std::string& fit() const { return fit_; }
  const std::string& partial() const { return partial_; }
  const std::string& records() const { return records_; }

  bool HasPartial() const;
  // Renames the partial records, to a name that is free; returns to what.
  // Throws InputError.
  std::string SetAside() const;
  // Cuts a last line that is not whole, so that the next does not join it.
  // False where it cannot.
  bool DropTail() const;
  void RemovePartial() const;
  // Puts earlier records, whole lines, before the partial ones. Throws
  // InputError, and leaves these as they were.
  void PutFirst(const std::string& records) const;
  // Puts the records beside the fit that was made of them, and returns where
  // they are; those that were there get a name that is free.
  std::string Keep(bool fit_in_place) const;

 private:
  std::string fit_;
  std::string partial_;
  std::string records_;
};

}  // namespace trainfare::calibrate::internal
