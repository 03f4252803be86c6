#include "scenarios/commands/list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_folders.h"
#include "hardware/catalog/device.h"
#include "hardware/catalog/instance.h"
#include "hardware/catalog/price.h"
#include "hardware/files/unit_text.h"
#include "model/architecture.h"
#include "model/error.h"
#include "model/letters.h"
#include "model/nearest.h"
#include "model/presets.h"
#include "scenarios/commands/keys.h"
#include "scenarios/commands/parameters.h"
#include "scenarios/job/pricing.h"
#include "scenarios/job/scenario.h"
#include "scenarios/report/result_json.h"

namespace trainfare::scenarios {
namespace {

constexpr std::array kListings = {
    std::pair{std::string_view("devices"), Listing::kDevices},
    std::pair{std::string_view("instances"), Listing::kInstances},
    std::pair{std::string_view("models"), Listing::kModels},
    std::pair{std::string_view("fits"), Listing::kFits},
    std::pair{std::string_view("scenarios"), Listing::kScenarios},
    std::pair{std::string_view("prices"), Listing::kPrices},
    std::pair{std::string_view("keys"), Listing::kKeys},
    std::pair{std::string_view("parameters"), Listing::kParameters},
};

const Cell& None() {
  static const Cell none("-", std::string());
  return none;
}

// A figure of a file in its base unit with the digits that the file may have, not
// with those that its unit's factor leaves behind them.
std::string StatedNumber(double value) {
  return ShortestNumber(std::stod(fmt::format("{:.14e}", value)));
}

Cell Rate(const std::optional<model::FlopsPerSecond<>>& rate) {
  return rate ? Cell(hardware::FormatComputeRate(*rate),
                     StatedNumber(rate->base()))
              : None();
}

Table Devices() {
  Table table;
  table.columns = {{"device", "device", Align::kLeft},
                   {"reports itself as", "reported_name", Align::kLeft, 7},
                   {"vendor", "vendor", Align::kLeft, 9},
                   {"kind", "kind", Align::kLeft, 4},
                   {"memory", "memory_bytes", Align::kRight},
                   {"bandwidth", "bandwidth_bytes_per_s", Align::kRight, 1},
                   {"fp32", "fp32_flops_per_s", Align::kRight, 5},
                   {"tf32", "tf32_flops_per_s", Align::kRight, 8},
                   {"fp16", "fp16_flops_per_s", Align::kRight, 3},
                   {"bf16", "bf16_flops_per_s", Align::kRight},
                   {"fp8", "fp8_flops_per_s", Align::kRight, 6},
                   {"fp4", "fp4_flops_per_s", Align::kRight, 9},
                   {"power", "max_power_w", Align::kRight, 2}};
  const auto add = [&](const hardware::Device& d) {
    table.Add({d.name,
               d.reported_name.empty() ? None() : Cell(d.reported_name),
               d.vendor,
               std::string(hardware::ToText(d.kind)),
               Cell(hardware::FormatBytes(d.memory_capacity),
                    ToBytes(d.memory_capacity)),
               Cell(hardware::FormatBandwidth(d.memory_bandwidth),
                    StatedNumber(d.memory_bandwidth.base())),
               Rate(d.peak.fp32),
               Rate(d.peak.tf32),
               Rate(d.peak.fp16),
               Rate(d.peak.bf16),
               Rate(d.peak.fp8),
               Rate(d.peak.fp4),
               d.max_power ? Cell(hardware::FormatPower(*d.max_power),
                                  ToWatts(*d.max_power))
                           : None()});
  };
  add(hardware::HostCpu());
  for (const hardware::Device& device :
       hardware::DeviceCatalog::Shipped().devices()) {
    add(device);
  }
  return table;
}

Cell PriceCell(const std::optional<Tariff>& tariff) {
  if (!tariff) return None();
  const double price = ToDollarsPerHour(tariff->price);
  return {fmt::format("${:.3f}", price), price};
}

Table Instances() {
  Table table;
  table.columns = {{"instance", "instance", Align::kLeft},
                   {"device", "device", Align::kLeft},
                   {"count", "devices", Align::kRight},
                   {"vCPUs", "vcpus", Align::kRight, 4},
                   {"host memory", "host_memory_bytes", Align::kRight, 3},
                   {"on demand/h", "price_usd_per_hour", Align::kDecimal},
                   {"spot/h", "spot_price_usd_per_hour", Align::kDecimal},
                   {"region", "region", Align::kLeft, 2},
                   {"date", "date", Align::kLeft, 5}};
  const Pricing pricing(PriceOptions{});
  for (const hardware::Instance& instance :
       hardware::InstanceCatalog::Shipped().instances()) {
    const auto on_demand = pricing.Of(instance, false);
    const auto spot = pricing.Of(instance, true);
    const auto& any = on_demand ? on_demand : spot;
    table.Add({instance.FullName(),
               instance.device,
               CountCell(instance.count),
               CountCell(instance.vcpus),
               Cell(hardware::FormatBytes(instance.host_memory),
                    ToBytes(instance.host_memory)),
               PriceCell(on_demand),
               PriceCell(spot),
               any ? Cell(any->region) : None(),
               any ? Cell(any->date) : None()});
  }
  return table;
}

Table Models() {
  Table table;
  table.columns = {{"model", "model", Align::kLeft},
                   {"family", "family", Align::kLeft, 3},
                   {"layers", "layers", Align::kLeft},
                   {"hidden", "hidden", Align::kRight, 2},
                   {"heads", "heads", Align::kRight, 4},
                   {"feed-forward", "intermediate", Align::kRight, 6},
                   {"vocabulary", "vocabulary", Align::kRight, 5},
                   {"longest", "positions", Align::kRight, 1},
                   {"parameters", "parameters", Align::kRight},
                   {"also named", "aliases", Align::kLeft, 7}};
  const auto presets = model::ArchitecturePresets();
  std::vector<model::Architecture> all(presets.begin(), presets.end());
  for (model::Architecture& other : model::CheckpointsOfOtherLengths()) {
    all.push_back(std::move(other));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.name < b.name;
  });
  for (const model::Architecture& a : all) {
    const auto longest = a.max_sequence_length();
    const auto aliases = model::AliasesOf(a.name);
    table.Add(
        {a.name,
         std::string(model::ToText(a.family)),
         a.decoder_layers > 0 ? fmt::format("{}+{}", a.layers, a.decoder_layers)
                              : fmt::format("{}", a.layers),
         CountCell(a.hidden),
         CountCell(a.heads),
         CountCell(a.intermediate),
         CountCell(a.vocabulary),
         longest ? CountCell(*longest) : None(),
         CountCell(model::TotalParameters(a)),
         aliases.empty() ? None()
                         : Cell(fmt::format("{}", fmt::join(aliases, ", ")))});
  }
  return table;
}

// "2 ranks (gloo), 4 ranks (gloo)".
Cell Rings(const calibrate::Fit& fit) {
  std::string text;
  for (const calibrate::RankFit& group : fit.ranks) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} ranks", group.network.ranks);
    if (!group.backend.empty()) text += fmt::format(" ({})", group.backend);
  }
  return text.empty() ? Cell("-", std::string()) : Cell(text);
}

Table FitTable(std::vector<std::string>& left_out) {
  Table table;
  table.columns = {{"fit", "fit", Align::kLeft},
                   {"device", "device", Align::kLeft, 3},
                   {"measured on", "reported_name", Align::kLeft, 6},
                   {"runs", "runs", Align::kRight},
                   {"error inside", "in_sample_error_percent", Align::kDecimal},
                   {"left out", "leave_one_out_error_percent", Align::kDecimal},
                   {"ring of", "rings", Align::kLeft, 5},
                   {"date", "date", Align::kLeft, 4},
                   {"source", "source", Align::kLeft, 7}};
  const auto percent = [](double share) {
    return Cell(fmt::format("{:.1f} %", 100.0 * share), 100.0 * share);
  };
  calibrate::LoadedFits files = calibrate::LoadFits();
  left_out = std::move(files.left_out);
  for (const calibrate::Fit& fit : files.fits) {
    table.Add({fit.name,
               fit.device,
               fit.reported_name,
               CountCell(fit.provenance.runs),
               percent(fit.in_sample_error),
               fit.LeftOutError() ? percent(*fit.LeftOutError()) : None(),
               Rings(fit),
               fit.provenance.date,
               fit.provenance.source});
  }
  return table;
}

Table Scenarios() {
  Table table;
  table.columns = {{"scenario", "scenario", Align::kLeft},
                   {"what", "title", Align::kLeft},
                   {"model", "model", Align::kLeft},
                   {"samples", "train_samples", Align::kRight, 3},
                   {"epochs", "epochs", Align::kRight, 4},
                   {"batch", "batch", Align::kRight, 1},
                   {"padding", "padding", Align::kLeft, 5},
                   {"precision", "precision", Align::kLeft, 2},
                   {"optimizer", "optimizer", Align::kLeft, 6},
                   {"stack", "stack", Align::kLeft, 7}};
  for (const std::string& name : ShippedScenarios()) {
    const Scenario s = LoadScenario(name);
    table.Add({s.name,
               s.title,
               s.workload.architecture.name,
               CountCell(s.train_samples),
               CountCell(s.epochs),
               CountCell(s.workload.batch),
               Describe(s.padding),
               std::string(model::ToText(s.workload.precision)),
               std::string(model::ToText(s.workload.optimizer.kind)),
               std::string(model::ToText(s.workload.stack.fusion))});
  }
  return table;
}

void AddPrices(const hardware::CloudPrices& cloud, Table& table) {
  const auto price =
      [](const std::optional<model::UsdPerSecond<>>& value) -> Cell {
    if (!value) return None();
    const double usd = ToDollarsPerHour(*value);
    return {fmt::format("${:.4f}", usd), usd};
  };
  for (const hardware::Price& p : cloud.prices) {
    table.Add({fmt::format("{}/{}", p.cloud, p.instance),
               p.region,
               price(p.on_demand),
               price(p.spot_low),
               price(p.spot_high),
               p.date,
               p.suspicious.empty() ? None() : Cell(p.suspicious)});
  }
}

Table PriceTable() {
  Table table;
  table.columns = {{"instance", "instance", Align::kLeft},
                   {"region", "region", Align::kLeft},
                   {"on demand/h", "price_usd_per_hour", Align::kDecimal},
                   {"spot/h from", "spot_low_usd_per_hour", Align::kDecimal},
                   {"to", "spot_high_usd_per_hour", Align::kDecimal},
                   {"date", "date", Align::kLeft, 1},
                   {"caution", "caution", Align::kLeft}};
  return table;
}

Table Prices() {
  Table table = PriceTable();
  const hardware::PriceCatalog& catalog = hardware::PriceCatalog::Shipped();
  for (const std::string& cloud : catalog.clouds()) {
    AddPrices(catalog.Of(cloud), table);
  }
  return table;
}

std::set<std::string> CloudsOfInstances() {
  std::set<std::string> clouds;
  for (const hardware::Instance& instance :
       hardware::InstanceCatalog::Shipped().instances()) {
    clouds.insert(instance.cloud);
  }
  return clouds;
}

// `left_out_fits`: files that could not be listed, a line each.
Table TableOf(Listing what, std::vector<std::string>& left_out_fits) {
  switch (what) {
    case Listing::kDevices:
      return Devices();
    case Listing::kInstances:
      return Instances();
    case Listing::kModels:
      return Models();
    case Listing::kFits:
      return FitTable(left_out_fits);
    case Listing::kScenarios:
      return Scenarios();
    case Listing::kPrices:
      return Prices();
    case Listing::kKeys:
      return Keys();
    case Listing::kParameters: {
      calibrate::LoadedFits files = calibrate::LoadFits();
      left_out_fits = std::move(files.left_out);
      return Parameters(files.fits);
    }
  }
  ENSURE(false, "a listing without a table");
}

void KeepRowsWith(const std::vector<std::string>& words, Table& table) {
  std::erase_if(table.rows, [&](const std::vector<Cell>& row) {
    std::string text;
    for (const Cell& cell : row) text += model::Lowered(cell.text) + "\n";
    return !std::all_of(
        words.begin(), words.end(), [&](const std::string& word) {
          return text.find(model::Lowered(word)) != std::string::npos;
        });
  });
}

// The row of a model that is spelled as no cell is ("meta-llama/Llama-3.1-8B").
void KeepModelSpelled(const std::vector<std::string>& words, Table& table) {
  if (words.size() != 1) return;
  const model::Architecture* spelled =
      model::SpelledArchitecture(words.front());
  if (spelled == nullptr) return;
  table = Models();
  std::erase_if(table.rows, [&](const std::vector<Cell>& row) {
    return row.front().text != spelled->name;
  });
}

// On however narrow a terminal.
void KeepColumn(std::string_view key, Table& table) {
  for (Column& column : table.columns) {
    if (column.key == key) column.drop = 0;
  }
}

// Machines alone get the column in which every row says the same.
void HideIfAlike(std::string_view key, Table& table) {
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].key != key) continue;
    const bool alike =
        std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
          return row[c].raw == table.rows.front()[c].raw;
        });
    if (alike) table.columns[c].audience = Audience::kMachines;
  }
}

// A number where the cell's machine form is one, null where there is none.
Json RowJson(const Table& table, const std::vector<Cell>& row) {
  Json json;
  for (size_t c = 0; c < row.size(); ++c) {
    const std::string& key = table.columns[c].key;
    if (row[c].raw.empty()) {
      json[key] = nullptr;
    } else if (table.columns[c].align == Align::kLeft) {
      json[key] = row[c].raw;
    } else {
      json[key] = Json::parse(row[c].raw);
    }
  }
  return json;
}

Json RowsJson(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) rows.push_back(RowJson(table, row));
  return rows;
}

// Prices as they are written, and those that ship, which people have a word
// above.
bool IsPriceFile(std::string_view text) {
  const auto has_line = [&](std::string_view key) {
    return text.starts_with(key) ||
           text.find(fmt::format("\n{}", key)) != std::string_view::npos;
  };
  return has_line("cloud:") && has_line("prices:");
}

// A catalog without a price would take the place of one that has them.
[[noreturn]] void RefuseUnused(const std::string& file,
                               const hardware::ImportedPrices& imported) {
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : imported.dropped) {
    reasons.push_back(fmt::format("{} dropped: {}", count, reason));
  }
  throw model::InputError(
      fmt::format("{}: expected rows with prices, none of {} can be used{}{}",
                  file,
                  imported.rows,
                  reasons.empty() ? "" : "; ",
                  fmt::join(reasons, ", ")));
}

}  // namespace

std::vector<std::string_view> ListingWords() {
  std::vector<std::string_view> words;
  for (const auto& [name, listing] : kListings) words.push_back(name);
  return words;
}

Listing ListingFromText(std::string_view text) {
  for (const auto& [name, listing] : kListings) {
    if (name == text) return listing;
  }
  throw UsageError(fmt::format(
      "list: unknown \"{}\"{}", text, model::OfKnown(text, ListingWords())));
}

Report List(Listing what,
            const std::vector<std::string>& words,
            const Origin& origin) {
  Report report;
  std::vector<std::string> left_out_fits;
  report.tables.push_back(TableOf(what, left_out_fits));
  report.warnings = NotesOf(left_out_fits, Caution::kFitUnreadable);
  KeepRowsWith(words, report.tables.front());
  if (report.tables.front().rows.empty() && what == Listing::kModels) {
    KeepModelSpelled(words, report.tables.front());
  }
  // What was asked for may be another name of the row that is left.
  if (!words.empty()) KeepColumn("aliases", report.tables.front());
  if (what == Listing::kKeys) HideIfAlike("of", report.tables.front());
  Grounds grounds;
  if (what == Listing::kPrices || what == Listing::kInstances) {
    grounds.prices = SourcesOf({}, CloudsOfInstances());
  }
  Json json = ResultHead("trainfare.list/1", origin, grounds);
  for (const auto& [name, listing] : kListings) {
    if (listing == what) json["list"] = name;
  }
  json["rows"] = RowsJson(report.tables.front());
  if (what == Listing::kModels) {
    for (Json& row : json["rows"]) {
      row["aliases"] = model::AliasesOf(row["model"].get<std::string>());
    }
  }
  for (size_t row = 0; row < json["rows"].size(); ++row) {
    report.answers.push_back(fmt::format("/rows/{}", row));
  }
  if (!words.empty() && report.tables.front().rows.empty()) {
    report.notes.push_back(
        fmt::format("nothing has \"{}\"", fmt::join(words, "\" and \"")));
  } else if (what == Listing::kFits && report.tables.front().rows.empty()) {
    report.notes.emplace_back(
        "no fits yet: `trainfare calibrate` makes one of this machine");
  }
  report.json = AnswerText(std::move(json), report);
  return report;
}

hardware::ImportedPrices ReadCatalog(const std::string& file,
                                     const std::string& cloud,
                                     const std::string& date) {
  if (!hardware::IsDate(date)) {
    throw model::InputError(fmt::format(
        "--date: expected a day such as 2026-05-20, got \"{}\"", date));
  }
  hardware::ImportedPrices imported =
      hardware::ImportSkyPilotCatalog(file, cloud, date);
  if (imported.used == 0) RefuseUnused(file, imported);
  return imported;
}

Report ImportPrices(const std::string& file,
                    const hardware::ImportedPrices& imported,
                    const std::string& output,
                    const Origin& origin) {
  RequireOurs("--output", output, "prices", IsPriceFile);
  const std::string& cloud = imported.prices.cloud;
  if (!output.empty()) WriteFile(output, hardware::ToYaml(imported.prices));

  Report report;
  report.headline.push_back(
      fmt::format("{}: {} of {} used for {} of {}",
                  file,
                  imported.used,
                  hardware::Plural(imported.rows, "row"),
                  hardware::Plural(std::ssize(imported.prices.prices), "price"),
                  imported.prices.cloud));
  Table table = PriceTable();
  AddPrices(imported.prices, table);
  report.tables.push_back(std::move(table));
  Json dropped;
  for (const auto& [reason, count] : imported.dropped) {
    report.notes.emplace_back(
        fmt::format("{} dropped: {}", hardware::Plural(count, "row"), reason),
        Caution::kRowsDropped);
    dropped.push_back({{"reason", reason}, {"rows", count}});
  }
  report.notes.push_back(output.empty()
                             ? "nothing was written: give --output FILE"
                             : fmt::format("prices written to {}; pass them "
                                           "with --prices {}",
                                           output,
                                           output));
  const std::set<std::string> clouds = CloudsOfInstances();
  if (!clouds.contains(cloud)) {
    report.notes.emplace_back(
        fmt::format(
            "no instance of {} is known, so recommend has no use for them{}",
            cloud,
            model::DidYouMean(cloud, model::NameViews(clouds))),
        Caution::kCloudUnknown);
  }
  Json json = ResultHead("trainfare.price_import/1", origin);
  json["file"] = file;
  json["cloud"] = cloud;
  json["date"] = imported.prices.date;
  json["rows"] = imported.rows;
  json["used"] = imported.used;
  json["dropped"] = dropped.is_null() ? Json::array() : dropped;
  json["prices"] = RowsJson(report.tables.front());
  report.json = AnswerText(std::move(json), report);
  return report;
}

}  // namespace trainfare::scenarios
