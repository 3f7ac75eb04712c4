#include "cli/verb_options.hpp"

#include <fmt/format.h>

#include <charconv>

#include "cli/quantities.hpp"
#include "sys/process.hpp"

namespace diapause::cli {

std::string footer(std::initializer_list<const char*> examples, const char* exit_codes) {
  std::string text = "Examples:\n";
  for (const char* example : examples) text += std::string("  ") + example + "\n";
  return text + "\n" + exit_codes;
}

namespace {

template <typename Number>
CLI::Validator number_within(Number least, Number most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    const bool is_sound = parsed.ec == std::errc() && parsed.ptr == end;
    if (is_sound && number >= least && number <= most) return "";  // which nan is not
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator quantity(Result<double> (*parse)(std::string_view)) {
  const auto check = [parse](const std::string& text) -> std::string {
    const auto value = parse(text);
    return value ? "" : value.error().message;
  };
  return CLI::Validator(check, "");
}

}  // namespace

CLI::Validator a_time() { return quantity(parse_time_s); }
CLI::Validator a_size() { return quantity(parse_size_bytes); }
CLI::Validator natural() { return number_within(std::uint64_t{0}, UINT64_MAX); }
CLI::Validator within(int least, int most) { return number_within(least, most); }
CLI::Validator within(unsigned least, unsigned most) { return number_within(least, most); }
CLI::Validator within(double least, double most) { return number_within(least, most); }

config::Settings default_settings() {
  return config::parse_settings("", "", {}, sys::user_id()).value_or(config::Settings{});
}

void add_config(CLI::App& verb, std::string& config) {
  verb.add_option("--config", config, "Configuration file [$DIAPAUSE_CONFIG, or none]")
      ->option_text("FILE");
}

void add_global(CLI::App& verb, std::optional<std::string>& global) {
  verb.add_option("--global", global, "Directory of the global tier, instead of the configured one")
      ->option_text("PATH")
      ->default_str(default_settings().global_path);
}

void add_places(CLI::App& verb, Places& places) {
  const config::Settings settings = default_settings();
  add_config(verb, places.config);
  verb.add_option("--memory", places.memory,
                  "Directory of the memory tier, instead of the configured one")
      ->option_text("PATH")
      ->default_str(settings.memory_path);
  verb.add_option("--local", places.local,
                  "Directory of the local tier, instead of the configured one")
      ->option_text("PATH")
      ->default_str(settings.local_path.empty() ? "none" : settings.local_path);
  add_global(verb, places.global);
}

CLI::Option* add_job(CLI::App& verb, std::string& job) {
  return verb.add_option("job", job, "Name of a job, or NAME-XXXXXXXX if the name is not unique")
      ->option_text("JOB");
}

void add_job_or_ledger(CLI::App& verb, std::string& job) {
  verb.add_option("job", job, "Name of a job, or path of a ledger")
      ->option_text("JOB|LEDGER")
      ->required();
}

CLI::Option* add_repeated(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                          const char* what) {
  return verb.add_option(name, values, what)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace diapause::cli
