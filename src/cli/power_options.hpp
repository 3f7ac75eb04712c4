// The options of `diapause power` and its sub-verbs.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <variant>

#include "cli/power_arguments.hpp"

namespace diapause::cli {

class PowerOptions {
 public:
  // Adds the verb, and gives it back for more sub-verbs; this object must live until the arguments are parsed.
  CLI::App& add(CLI::App& app);
  // What was asked for; call it if "power" was, and no other sub-verb.
  std::variant<PowerArguments, PowerRecordArguments, PowerCalibrateArguments> chosen() const;

 private:
  CLI::App* verb_ = nullptr;
  PowerArguments live_;
  PowerRecordArguments record_;
  PowerCalibrateArguments calibrate_;
};

}  // namespace diapause::cli
