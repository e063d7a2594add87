// Reads the keys of one map of a configuration file and says everything that is wrong with them.
//
//   ConfigReader job(node, "job", context);
//   spec.micro_batch_size = job.optional<std::int64_t>("micro_batch_size", 1, "the trainers' own
//   default", kPositive); spec.sequence_length = job.required<std::int64_t>("sequence_length",
//   kPositive); ConfigReader precision = job.section("precision");
//   ...
//   precision.finish(); job.finish();   // keys that nobody asked for are errors: "did you mean
//   ...?"
//
// A key that is absent and one that is null mean the same. No default is silent: optional() files
// an assumption. A value that cannot be read is an error, and reading goes on with the default.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/assumptions.h"
#include "sim/scenario/config_node.h"
#include "sim/scenario/config_value.h"

namespace sim {

struct ReadContext {
  Diagnostics& diagnostics;
  Assumptions* assumptions = nullptr;  // where defaults are filed
  std::set<std::string>* keys =
      nullptr;  // every key asked for, dotted: what the schema has to know
};

// A word of a closed set and what it stands for.
template <class E>
struct Choice {
  std::string_view word;
  E value;
};

class ConfigReader {
 public:
  // `path` is the dotted name of the map, empty for the whole file. Files an error where `node` is
  // no map and reads it as an empty one.
  ConfigReader(const ConfigNode& node, std::string path, ReadContext& context);

  bool has(std::string_view key) { return find_node(key) != nullptr; }
  // nullptr where absent or null. The key counts as known.
  const ConfigNode* find_node(std::string_view key);
  // The map below `key`; an empty one where absent.
  ConfigReader section(std::string_view key);

  template <class T>
  std::optional<Located<T>> find(std::string_view key) {
    const ConfigNode* node = find_node(key);
    if (!node) return std::nullopt;
    const std::string name = path_of(key);
    std::optional<T> value = read_value<T>(*node, {name}, context_->diagnostics);
    if (!value) return std::nullopt;
    return Located<T>{std::move(*value), node->at};
  }
  template <class T>
  std::optional<Located<T>> find(std::string_view key, Limits<T> limits) {
    std::optional<Located<T>> value = find<T>(key);
    const std::string name = path_of(key);
    if (value && !check_limits(value->value, limits, value->at, {name}, context_->diagnostics)) {
      return std::nullopt;
    }
    return value;
  }

  template <class T, class... Limit>
  Located<T> required(std::string_view key, Limit... limits) {
    if (!has(key)) report_missing(key);
    return find<T>(key, limits...).value_or(Located<T>{T{}, at_});
  }

  template <class T, class... Limit>
  Located<T> optional(std::string_view key, T fallback, std::string why, Limit... limits) {
    if (!has(key)) assume(key, write_value(fallback), std::move(why));
    return find<T>(key, limits...).value_or(Located<T>{std::move(fallback), at_});
  }

  template <class E>
  std::optional<Located<E>> find_choice(std::string_view key, std::span<const Choice<E>> choices) {
    const std::optional<Located<std::string>> word = find<std::string>(key);
    if (!word) return std::nullopt;
    for (const Choice<E>& choice : choices) {
      if (choice.word == word->value) return Located<E>{choice.value, word->at};
    }
    std::vector<std::string> words;
    for (const Choice<E>& choice : choices) words.emplace_back(choice.word);
    report_unknown_word(key, *word, words);
    return std::nullopt;
  }
  // The first choice is the default.
  template <class E>
  Located<E> choice(std::string_view key, std::span<const Choice<E>> choices, std::string why) {
    if (!has(key)) assume(key, std::string(choices.front().word), std::move(why));
    return find_choice(key, choices).value_or(Located<E>{choices.front().value, at_});
  }

  // A name of an open set: any word.
  std::optional<Named> find_named(std::string_view key);
  Named required_named(std::string_view key);
  Named optional_named(std::string_view key, std::string fallback, std::string why);

  // A value chosen elsewhere for a key that is absent.
  void assume(std::string_view key, std::string value, std::string why);
  // Files an error for each key that nobody asked for. The last call.
  void finish();

  bool is_map() const { return is_map_; }  // or absent; false = refused as no map
  std::string path_of(std::string_view key) const;
  const Span& at() const { return at_; }  // of the map
  Diagnostics& diagnostics() { return context_->diagnostics; }
  ReadContext& context() { return *context_; }

 private:
  void report_missing(std::string_view key);
  void report_unknown_word(std::string_view key, const Located<std::string>& word,
                           const std::vector<std::string>& words);

  const ConfigNode* map_;
  bool is_map_;  // else what is missing in it needs no words
  Span at_;
  std::string path_;
  ReadContext* context_;
  std::vector<std::string> asked_;
};

}  // namespace sim
