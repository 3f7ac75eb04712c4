// Checks that docs/configuration.md and the table of keys say the same.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "config/keys.hpp"

namespace diapause::config {
namespace {

struct Row {
  std::string key, type, standard, environment, meaning;
};

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  for (std::size_t start = 2; start < line.size();) {
    const std::size_t end = line.find(" |", start);
    if (end == std::string::npos) break;
    result.push_back(line.substr(start, end - start));
    start = end + 3;
  }
  return result;
}

std::string without_code_marks(std::string text) {
  std::erase(text, '`');
  return text;
}

std::vector<Row> documented_rows() {
  std::ifstream file(DIAPAUSE_SOURCE_DIR "/docs/configuration.md");
  EXPECT_TRUE(file.is_open());
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    const auto cell = cells(line);
    if (cell.size() != 5) {
      ADD_FAILURE() << line;
      continue;
    }
    rows.push_back({without_code_marks(cell[0]), cell[1], without_code_marks(cell[2]),
                    without_code_marks(cell[3]), cell[4]});
  }
  return rows;
}

Draft documented_defaults() {
  Draft draft;
  draft.settings = default_settings(0);
  draft.settings.memory_path = "/dev/shm/diapause-<uid>";
  draft.settings.governor.state_path = "/dev/shm/diapause-power-<uid>";
  return draft;
}

TEST(Documentation, NamesEveryKeyInOrderAndNoOther) {
  std::vector<std::string> documented, known;
  for (const Row& row : documented_rows()) documented.push_back(row.key);
  for (const Key& key : all_keys()) known.push_back(key.full_name());
  EXPECT_EQ(documented, known);
}

TEST(Documentation, SaysWhatTheCodeSaysOfEachKey) {
  Draft defaults = documented_defaults();
  for (const Row& row : documented_rows()) {
    const std::size_t dot = row.key.find('.');
    const Key* key = dot == std::string::npos
                         ? find_key("", row.key)
                         : find_key(row.key.substr(0, dot), row.key.substr(dot + 1));
    ASSERT_NE(key, nullptr) << row.key;
    EXPECT_EQ(row.type, key->allowed()) << row.key;
    EXPECT_EQ(row.standard, key->shown(defaults)) << row.key;
    EXPECT_EQ(row.environment, key->environment()) << row.key;
    EXPECT_FALSE(row.meaning.empty()) << row.key;
  }
}

TEST(Documentation, HasAnExampleThatIsAccepted) {
  std::ifstream file(DIAPAUSE_SOURCE_DIR "/docs/configuration.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t start = text.find("```toml\n") + 8;
  const auto settings =
      parse_settings(text.substr(start, text.find("```", start) - start), "example", {}, 0);
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->level(1).interval.seconds, 180);
  EXPECT_EQ(settings->parity, 2U);
}

}  // namespace
}  // namespace diapause::config
