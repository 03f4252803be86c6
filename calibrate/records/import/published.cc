#include "calibrate/records/import/published.h"

#include "model/error.h"

namespace trainfare::calibrate {

const PublishedRun& Published::RunOf(const PublishedRow& row) const {
  const auto found = runs.find(row.run);
  ENSURE(found != runs.end(), "a row belongs to a run");
  return found->second;
}

const PublishedRow* Published::Find(std::string_view id) const {
  for (const PublishedRow& row : rows) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

const PublishedGroup* Published::Group(std::string_view name) const {
  for (const PublishedGroup& group : groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

bool Published::Same(const std::string& run, const std::string& other) const {
  const auto root = [this](const std::string& name) {
    std::string at = name;
    // A chain of runs ends, however its links are written.
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto found = runs.find(at);
      if (found == runs.end() || !found->second.same_as) break;
      at = *found->second.same_as;
    }
    return at;
  };
  return root(run) == root(other);
}

std::string_view ToText(PublishedUse use) {
  switch (use) {
    case PublishedUse::kFit:
      return "fit";
    case PublishedUse::kCheck:
      return "check";
    case PublishedUse::kShow:
      return "show";
    case PublishedUse::kNone:
      return "none";
  }
  ENSURE(false, "unknown use");
  return "";
}

}  // namespace trainfare::calibrate
