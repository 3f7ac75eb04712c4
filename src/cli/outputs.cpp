#include "cli/outputs.hpp"

#include "sys/text_file.hpp"

namespace diapause::cli {

std::string numbers_of_picture(const std::string& picture) { return picture + ".json"; }

Status check_output(const std::string& option, const std::string& file) {
  if (file.empty()) return {};
  const Status can_be = sys::check_replaceable(sys::real_kernel(), file);
  if (can_be) return {};
  return fail(can_be.error().code, option + ": " + can_be.error().message);
}

Status check_picture(const std::string& option, const std::string& picture) {
  DIAPAUSE_TRY(check_output(option, picture));
  return picture.empty() ? Status{} : check_output(option, numbers_of_picture(picture));
}

}  // namespace diapause::cli
