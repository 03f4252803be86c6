#include "calibrate/records/import/timed_parts.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "calibrate/records/import/table_said.h"

namespace trainfare::calibrate {
namespace {

using model::Work;

// What a word of a clause is to what was timed.
enum class Part {
  kForward,
  kBackward,
  kBoth,    // both of them, named together
  kUpdate,  // of the weights
  kOnly,
  kWithout,
  kWith,
  kJoin,
  kBreak,        // another thought begins
  kTime,         // that something was timed
  kDescription,  // of what passes do, not of how long they take
  kInference,
  kOther,
};

struct Clause {
  std::vector<Part> parts;
  bool timed = false;
  bool describes = false;

  bool Is(size_t at, Part part) const {
    return at < parts.size() && parts[at] == part;
  }
  // A phrase ends before `at`: what stands there does not go on about it.
  bool Ends(size_t at) const {
    return at >= parts.size() ||
           (parts[at] != Part::kOther && parts[at] != Part::kDescription);
  }
};

bool IsAmong(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Part PartOf(std::string_view word) {
  const TimedParts& rules = RulesOfTables().timed_parts;
  if (IsAmong(rules.forward, word)) return Part::kForward;
  if (IsAmong(rules.backward, word)) return Part::kBackward;
  if (IsAmong(rules.update, word)) return Part::kUpdate;
  if (IsAmong(rules.only, word)) return Part::kOnly;
  if (IsAmong(rules.without, word)) return Part::kWithout;
  if (IsAmong(rules.with, word)) return Part::kWith;
  if (IsAmong(rules.join, word)) return Part::kJoin;
  if (IsAmong(rules.breaks, word)) return Part::kBreak;
  if (IsAmong(rules.time, word)) return Part::kTime;
  if (IsAmong(rules.description, word)) return Part::kDescription;
  if (IsAmong(rules.inference, word)) return Part::kInference;
  return Part::kOther;
}

void AddWord(std::string_view word, Clause& clause) {
  if (word.empty() || IsAmong(RulesOfTables().timed_parts.filler, word)) return;
  const Part part = PartOf(word);
  clause.timed |= part == Part::kTime;
  clause.describes |= part == Part::kDescription;
  // "not including" denies.
  const bool denied =
      !clause.parts.empty() && clause.parts.back() == Part::kWithout;
  if (part == Part::kTime || (part == Part::kWith && denied)) return;
  clause.parts.push_back(part);
}

// "forward and backward" as one: two passes with what joins them between.
void JoinPasses(Clause& clause) {
  std::vector<Part>& parts = clause.parts;
  for (size_t at = 0; at < parts.size(); ++at) {
    const Part other = parts[at] == Part::kForward    ? Part::kBackward
                       : parts[at] == Part::kBackward ? Part::kForward
                                                      : Part::kOther;
    if (other == Part::kOther) continue;
    size_t next = at + 1;
    while (clause.Is(next, Part::kJoin)) ++next;
    if (!clause.Is(next, other)) continue;
    parts[at] = Part::kBoth;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                parts.begin() + static_cast<std::ptrdiff_t>(next) + 1);
  }
}

// Whether a full stop or colon at `at` ends a thought: not that of "2.1" or
// "incl.", nor that of "optimizer: none".
bool EndsAThought(std::string_view notes,
                  size_t at,
                  std::string_view word,
                  const Clause& clause) {
  const bool spaced =
      at + 1 == notes.size() || notes[at + 1] == ' ' || notes[at + 1] == ';';
  if (notes[at] == '.') return spaced && word != "incl" && word != "excl";
  return clause.parts.empty() || clause.parts.back() != Part::kUpdate;
}

// Words of the notes in lower case, between the marks that end a thought.
std::vector<Clause> ClausesOf(std::string_view notes) {
  constexpr std::string_view kEnds = ";()|";
  constexpr std::string_view kJoins = "+&,/";
  std::vector<Clause> clauses(1);
  std::string word;
  const auto end_word = [&] {
    AddWord(word, clauses.back());
    word.clear();
  };
  for (size_t at = 0; at < notes.size(); ++at) {
    const char letter = notes[at];
    // "w/o" is a word.
    if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
        (letter == '/' && word == "w" && notes.substr(at + 1, 1) == "o")) {
      word += letter;
      continue;
    }
    const std::string ended = word;
    end_word();
    if (Contains(kEnds, std::string_view(&letter, 1)) ||
        ((letter == '.' || letter == ':') &&
         EndsAThought(notes, at, ended, clauses.back()))) {
      clauses.emplace_back();
    } else if (Contains(kJoins, std::string_view(&letter, 1))) {
      clauses.back().parts.push_back(Part::kJoin);
    }
  }
  end_word();
  for (Clause& clause : clauses) JoinPasses(clause);
  return clauses;
}

// Whether `at` is in a list of what there is not: "without Y or X". Adjectives
// change what is meant, "no fused optimizer", but where passes stand before
// them: "both passes without an Adam update".
bool DeniedInList(const Clause& clause, size_t at) {
  const auto begin = clause.parts.begin();
  const auto here = begin + static_cast<std::ptrdiff_t>(at);
  const bool after_passes = std::find(begin, here, Part::kBoth) != here;
  constexpr size_t kPartsBefore = 6;
  bool listed = false;
  for (size_t back = 1; back <= std::min(at, kPartsBefore); ++back) {
    const Part part = clause.parts[at - back];
    if (part == Part::kWithout) return true;
    const bool begins_another = part == Part::kBreak || part == Part::kWith ||
                                part == Part::kBoth || part == Part::kOnly;
    listed |= part == Part::kJoin;
    if (begins_another || (!listed && !after_passes)) return false;
  }
  return false;
}

// What is said of the part at `at` in so many words, or by the words beside it.
enum class Stated { kNothing, kThere, kNotThere };

Stated StatedOf(const Clause& clause, size_t at) {
  const bool ends = clause.Ends(at + 2) && !clause.Is(at + 2, Part::kUpdate) &&
                    !clause.Is(at + 2, Part::kForward) &&
                    !clause.Is(at + 2, Part::kBackward);
  if (clause.Is(at + 1, Part::kWithout) && ends) return Stated::kNotThere;
  if (!clause.Ends(at + 1)) return Stated::kNothing;
  const Part before = at > 0 ? clause.parts[at - 1] : Part::kBreak;
  if (before == Part::kWithout) return Stated::kNotThere;
  if (clause.Is(at + 1, Part::kWith) && ends) return Stated::kThere;
  if (DeniedInList(clause, at)) return Stated::kNotThere;
  return before == Part::kWith ? Stated::kThere : Stated::kNothing;
}

// "forward, backward and the fused update".
bool ListedWithPasses(const Clause& clause, size_t at) {
  bool joined = false;
  for (size_t back = 1; back <= at; ++back) {
    const Part part = clause.parts[at - back];
    if (part == Part::kBoth) return joined;
    if (part == Part::kWithout || part == Part::kBreak) return false;
    joined |= part == Part::kJoin || part == Part::kWith;
  }
  return false;
}

bool Alone(const Clause& clause, size_t at) {
  return (at > 0 && clause.parts[at - 1] == Part::kOnly) ||
         clause.Is(at + 1, Part::kOnly) || clause.parts.size() == 1;
}

void AddPass(const Clause& clause,
             size_t at,
             bool& alone,
             bool& other_alone,
             SaidTimed& said) {
  if (StatedOf(clause, at) == Stated::kNotThere) {
    other_alone = true;
  } else if (Alone(clause, at)) {
    alone = true;
  } else if (clause.timed) {
    said.unclear = true;
  }
}

void AddBoth(const Clause& clause, size_t at, SaidTimed& said) {
  const bool only = (at > 0 && clause.parts[at - 1] == Part::kOnly) ||
                    clause.Is(at + 1, Part::kOnly);
  if (only) {
    said.no_update = true;
  } else if (clause.timed || !clause.describes) {
    said.both_passes = true;
  }
}

void AddUpdate(const Clause& clause, size_t at, SaidTimed& said) {
  const Stated stated = StatedOf(clause, at);
  said.no_update |= stated == Stated::kNotThere;
  said.update |= stated == Stated::kThere ||
                 (stated == Stated::kNothing && clause.Ends(at + 1) &&
                  ListedWithPasses(clause, at));
}

void AddClause(const Clause& clause, SaidTimed& said) {
  for (size_t at = 0; at < clause.parts.size(); ++at) {
    switch (clause.parts[at]) {
      case Part::kForward:
        AddPass(clause, at, said.forward_alone, said.backward_alone, said);
        break;
      case Part::kBackward:
        AddPass(clause, at, said.backward_alone, said.forward_alone, said);
        break;
      case Part::kBoth:
        AddBoth(clause, at, said);
        break;
      case Part::kUpdate:
        AddUpdate(clause, at, said);
        break;
      case Part::kInference:
        said.inference |=
            clause.Ends(at + 1) && StatedOf(clause, at) != Stated::kNotThere;
        break;
      default:
        break;
    }
  }
}

// The row's task, or what its notes say where it has none.
bool IsInference(const TableRow& row, const SaidTimed& said) {
  const bool inference = TaskOf(row["task"]) == Task::kInference;
  if (!row["task"].empty() && !inference && said.inference) {
    throw Unused{"its notes say inference, its task does not"};
  }
  return inference || (row["task"].empty() && said.inference);
}

}  // namespace

SaidTimed SaidTimedOf(std::string_view notes) {
  SaidTimed said;
  for (const Clause& clause : ClausesOf(Lowered(notes))) {
    AddClause(clause, said);
  }
  said.both_passes = said.both_passes && !said.no_update;
  return said;
}

Measured WorkOf(const TableRow& row, Metric metric) {
  SaidTimed said = SaidTimedOf(row.AllNotes());
  if (IsInference(row, said)) {
    if (said.backward_alone || said.both_passes || said.update) {
      throw Unused{"inference, whose notes name a pass backward or an update"};
    }
    return {Work::kForward, Quantity::kStep};
  }
  // Its micro-batches are timed without the update.
  if (metric == Metric::kMicroTime) {
    said.no_update = true;
    said.both_passes = said.update = false;
  }
  const int parts = (said.forward_alone ? 1 : 0) +
                    (said.backward_alone ? 1 : 0) +
                    (said.both_passes || said.update ? 1 : 0);
  if (parts > 1 || (said.update && said.no_update)) {
    throw Unused{"its notes contradict each other on what was timed"};
  }
  if (said.forward_alone && row["task"].empty()) {
    throw Unused{"forward alone, of training or of inference is not stated"};
  }
  if (said.forward_alone) return {Work::kForwardBackward, Quantity::kForward};
  if (said.backward_alone) {
    return {Work::kForwardBackward, Quantity::kBackward};
  }
  if (said.no_update) return {Work::kForwardBackward, Quantity::kStep};
  if (said.both_passes && !said.update) {
    throw Unused{
        "forward and backward, with the update or without is not stated"};
  }
  if (said.unclear) throw Unused{"which passes were timed is not stated"};
  return {Work::kTraining, Quantity::kStep};
}

}  // namespace trainfare::calibrate
