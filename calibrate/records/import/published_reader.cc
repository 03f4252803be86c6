#include "calibrate/records/import/published_reader.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/records/import/published_check.h"
#include "calibrate/records/import/published_quantity.h"
#include "calibrate/records/import/published_run.h"
#include "hardware/files/data_directory.h"
#include "hardware/files/yaml_reader.h"
#include "model/error.h"

namespace trainfare::calibrate {
namespace {

using hardware::Reader;
using model::InputError;

constexpr std::string_view kPublishedSchema = "trainfare.published/1";
constexpr int64_t kLargestCorrection = 1'000'000'000'000;

struct SourceAlias {
  std::string records;
  std::string ref;
};
using Aliases = std::map<std::string, SourceAlias>;

// "t4_7/fp16" -> its table and the record it stands for.
std::pair<SourceAlias, std::string> Resolve(const Reader& map,
                                            std::string_view key,
                                            const std::string& from,
                                            const Aliases& aliases) {
  const size_t slash = from.find('/');
  const auto alias = aliases.find(from.substr(0, slash));
  if (slash == std::string::npos || slash + 1 == from.size() ||
      alias == aliases.end()) {
    map.Fail(key,
             fmt::format("expected a source of this file and a record, such "
                         "as \"t4_7/fp16\", got \"{}\"",
                         from));
  }
  return {alias->second,
          fmt::format("{}/{}", alias->second.records, from.substr(slash + 1))};
}

// What the files of one document say of its quantities.
struct Quantities {
  OwnQuantities own;
  PublishedChecks checks;
};

PublishedRow ReadRow(const Reader& map,
                     const Aliases& aliases,
                     const Quantities& quantities) {
  PublishedRow row;
  row.position = map.Position("run");
  row.run = map.Text("run");
  row.group = map.Text("group");
  row.quantity = map.Text("quantity");
  row.measure = map.Parsed("quantity", [&](const std::string& name) {
    return &MeasureOfQuantity(name, quantities.own);
  });
  const auto own = quantities.own.find(row.quantity);
  if (own != quantities.own.end()) row.why_not = own->second.why_not;
  const auto check = quantities.checks.find(row.quantity);
  if (check != quantities.checks.end()) row.check = check->second;
  row.part = map.OptionalText("part");
  row.id = row.run + "/" + row.quantity;
  if (row.part) row.id += "/" + *row.part;
  row.value = map.Parsed("value", [&row](const std::string& text) {
    return ParsePublishedValue(*row.measure, text);
  });
  if (map.Has("tolerance")) {
    map.Parsed("tolerance", [&row](const std::string& text) {
      WidenTolerance(text, row.value);
      return true;
    });
  }
  row.size = map.OptionalBytes("size");
  row.use = map.Choice<PublishedUse>("use",
                                     {{"fit", PublishedUse::kFit},
                                      {"check", PublishedUse::kCheck},
                                      {"show", PublishedUse::kShow},
                                      {"none", PublishedUse::kNone}});
  if (map.Has("corrections")) {
    row.corrections = map.Integers("corrections", 1, kLargestCorrection);
  }
  const bool explained = map.OptionalText("why").has_value();
  if (row.use == PublishedUse::kNone && row.corrections.empty() && !explained) {
    map.Fail("use", "expected a reason beside \"none\": corrections or why");
  }
  for (const std::string& from : map.Texts("from")) {
    auto [alias, record] = Resolve(map, "from", from, aliases);
    row.records.push_back(std::move(record));
    row.refs.push_back(alias.ref);
  }
  if (row.records.empty()) map.Fail("from", "expected a record, got none");
  return row;
}

// One file, read in two passes: a run may name a workload, and a row a run, of
// a file that comes later.
struct OpenFile {
  Reader root;
  std::string document;
  Aliases aliases;
  std::set<int64_t> corrections;
};

// nullopt: it is not of published figures, and says so by having no schema.
std::optional<OpenFile> OpenPublished(const std::string& path) {
  OpenFile file{Reader::FromFile(path), {}, {}, {}};
  const Reader& root = file.root;
  if (!root.Has("schema")) return std::nullopt;
  if (root.Text("schema") != kPublishedSchema) {
    root.Fail("schema",
              fmt::format("expected \"{}\", got \"{}\"",
                          kPublishedSchema,
                          root.Text("schema")));
  }
  root.Text("title");
  file.document = root.OptionalText("document").value_or("");
  const std::optional<Reader> optional = root.OptionalMap("sources");
  if (!optional) return file;
  const Reader& sources = *optional;
  for (const std::string& key : sources.Keys()) {
    const Reader source = sources.Map(key);
    file.aliases[key] = {source.Text("records"), source.Text("ref")};
  }
  return file;
}

// Percent asked of a group, or words of an outcome; nullopt: nothing.
std::optional<PublishedGroup::Limit> ReadLimit(const Reader& group,
                                               std::string_view key) {
  const std::optional<Reader> optional = group.OptionalMap(key);
  if (!optional) return std::nullopt;
  const Reader& map = *optional;
  PublishedGroup::Limit limit;
  limit.median = map.OptionalNumber("median", 0, Reader::kNoBound);
  limit.worst = map.OptionalNumber("worst", 0, Reader::kNoBound);
  limit.all_right = map.OptionalFlag("all_right").value_or(false);
  limit.all_answered = map.OptionalFlag("all_answered").value_or(false);
  limit.all_inside = map.OptionalFlag("all_inside").value_or(false);
  if (limit == PublishedGroup::Limit()) return std::nullopt;
  return limit;
}

void ReadGroups(const OpenFile& file, Published& published) {
  for (const Reader& map : file.root.OptionalMaps("groups")) {
    PublishedGroup group;
    group.name = map.Text("name");
    group.title = map.Text("title");
    if (published.Group(group.name) != nullptr) {
      map.Fail("name", "expected a new group, got one that stands before it");
    }
    group.as_shipped = ReadLimit(map, "as_shipped");
    group.leave_one_out = ReadLimit(map, "leave_one_out");
    group.chosen = map.Choice<std::string>(
        "chosen_on_these_rows",
        {{"yes", "yes"}, {"no", "no"}, {"priors", "priors"}});
    map.OptionalText("why");  // for a reader of the file
    published.groups.push_back(std::move(group));
  }
}

void ReadCorrections(OpenFile& file, Published& published) {
  for (const Reader& map : file.root.OptionalMaps("corrections")) {
    const int64_t id = map.Integer("id", 1, kLargestCorrection);
    PublishedCorrection correction{map.Text("what"), map.Text("handled")};
    file.corrections.insert(id);
    const auto [known, added] =
        published.corrections.try_emplace(id, correction);
    // A contradiction that touches two files is handled in one way.
    if (!added && (known->second.what != correction.what ||
                   known->second.handled != correction.handled)) {
      map.Fail(
          "id",
          fmt::format("correction {} is worded otherwise in another file", id));
    }
  }
}

void ReadRuns(const OpenFile& file,
              const std::map<std::string, Reader>& workloads,
              Published& published) {
  const std::optional<Reader> optional = file.root.OptionalMap("runs");
  if (!optional) return;
  const Reader& runs = *optional;
  for (const std::string& name : runs.Keys()) {
    const Reader map = runs.Map(name);
    const Reader* workload = nullptr;
    if (map.Has("workload")) {
      const auto found = workloads.find(map.Text("workload"));
      if (found == workloads.end()) {
        map.Fail("workload",
                 fmt::format("unknown workload \"{}\"", map.Text("workload")));
      }
      workload = &found->second;
    }
    PublishedRun run = ReadPublishedRun(
        map, workload, {name, runs.Position(name), file.document});
    const auto [known, added] = published.runs.try_emplace(name, run);
    if (!added) {
      runs.Fail(name,
                fmt::format("expected a new run, got one that stands at {}",
                            known->second.position));
    }
  }
}

void ReadRows(const OpenFile& file,
              const Quantities& quantities,
              std::map<std::string, std::string>& seen,
              Published& published) {
  for (const Reader& map : file.root.OptionalMaps("rows")) {
    PublishedRow row = ReadRow(map, file.aliases, quantities);
    if (!published.runs.contains(row.run)) {
      map.Fail("run", fmt::format("unknown run \"{}\"", row.run));
    }
    if (published.Group(row.group) == nullptr) {
      std::vector<std::string> known;
      for (const PublishedGroup& group : published.groups) {
        known.push_back(group.name);
      }
      map.Fail(
          "group",
          fmt::format("unknown group \"{}\"; {}",
                      row.group,
                      known.empty()
                          ? std::string("no file beside this one has "
                                        "groups; is groups.yaml missing?")
                          : fmt::format("known: {}", fmt::join(known, ", "))));
    }
    for (const int64_t id : row.corrections) {
      if (!file.corrections.contains(id)) {
        map.Fail("corrections",
                 fmt::format("correction {} does not stand in this file", id));
      }
    }
    const auto [known, added] = seen.try_emplace(row.id, row.position);
    if (!added) {
      map.Fail(fmt::format(
          "{} stands at {}; tell them apart by part", row.id, known->second));
    }
    published.rows.push_back(std::move(row));
  }
  for (const Reader& map : file.root.OptionalMaps("not_carried")) {
    const std::string why = map.Text("why");
    for (const std::string& from : map.Texts("records")) {
      published
          .not_carried[Resolve(map, "records", from, file.aliases).second] =
          why;
    }
  }
}

// Runs that a run names stand in one of the files.
void RequireNamedRuns(const Published& published) {
  for (const auto& named : published.runs) {
    const PublishedRun& run = named.second;
    const auto require = [&](std::string_view key, const std::string& other) {
      if (published.runs.contains(other)) return;
      throw InputError(
          fmt::format("{}: {}: unknown run \"{}\"", run.position, key, other));
    };
    if (run.same_as) require("same_as", *run.same_as);
    if (run.against_run) require("against_run", *run.against_run);
    for (const std::string& other : run.samples_from) {
      require("samples_from", other);
    }
  }
}

}  // namespace

Published LoadPublished(const std::string& directory) {
  std::vector<OpenFile> files;
  const std::vector<std::string> paths = hardware::YamlFiles(directory);
  for (const std::string& path : paths) {
    if (auto file = OpenPublished(path)) files.push_back(*std::move(file));
  }
  if (files.empty() && !paths.empty()) {
    throw InputError(directory,
                     0,
                     0,
                     fmt::format("expected files of published figures (schema: "
                                 "{}), got none",
                                 kPublishedSchema));
  }
  Published published;
  std::map<std::string, Reader> workloads;
  std::map<std::string, Quantities> quantities;  // by document
  for (const OpenFile& file : files) {
    OwnQuantities& own = quantities[file.document].own;
    if (const auto map = file.root.OptionalMap("quantities")) {
      ReadOwnQuantities(*map, own);
    }
  }
  for (OpenFile& file : files) {
    ReadGroups(file, published);
    ReadCorrections(file, published);
    Quantities& of_document = quantities.at(file.document);
    if (const auto map = file.root.OptionalMap("checks")) {
      ReadChecks(*map, of_document.own, of_document.checks);
    }
    const std::optional<Reader> maps = file.root.OptionalMap("workloads");
    if (!maps) continue;
    for (const std::string& name : maps->Keys()) {
      if (!workloads.try_emplace(name, maps->Map(name)).second) {
        maps->Fail(name, "expected a new workload, got one of another file");
      }
    }
  }
  for (const OpenFile& file : files) ReadRuns(file, workloads, published);
  RequireNamedRuns(published);
  std::map<std::string, std::string> seen;
  for (const OpenFile& file : files) {
    ReadRows(file, quantities.at(file.document), seen, published);
  }
  for (const OpenFile& file : files) file.root.Finish();
  return published;
}

void RequirePublished(const std::string& path) {
  if (OpenPublished(path)) return;
  throw InputError(path,
                   1,
                   1,
                   fmt::format("missing key \"schema\": expected a file of "
                               "published figures ({})",
                               kPublishedSchema));
}

}  // namespace trainfare::calibrate
