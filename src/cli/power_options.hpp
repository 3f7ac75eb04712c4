// The options of `diapause power` and its sub-verbs.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <variant>

#include "cli/power_arguments.hpp"

namespace diapause::cli {

class PowerOptions {
 public:
  // Adds the verb and returns it, so that sub-verbs can be added. This object must live until the
  // arguments are parsed.
  CLI::App& add(CLI::App& app);
  // Returns the chosen arguments. Called if "power" was typed with none of the other sub-verbs.
  std::variant<PowerArguments, PowerRecordArguments, PowerAlignArguments, PowerCalibrateArguments>
  chosen() const;

 private:
  CLI::App* verb_ = nullptr;
  PowerArguments live_;
  PowerRecordArguments record_;
  PowerAlignArguments align_;
  PowerCalibrateArguments calibrate_;
};

}  // namespace diapause::cli
