#include "engine/accounting/json_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace diapause::engine {

void JsonText::open(std::string_view name, char begin, char end) {
  begin_value(name);
  text_ += begin;
  ends_ += end;
}

void JsonText::close() {
  text_ += ends_.back();
  ends_.pop_back();
}

void JsonText::begin_value(std::string_view name) {
  if (text_.back() != '{' && text_.back() != '[') text_ += ',';
  if (name.empty()) return;
  text_ += '"';
  text_ += name;
  text_ += "\":";
}

void JsonText::put(std::string_view name, std::string_view text) {
  const bool is_plain = std::ranges::all_of(
      text, [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  begin_value(name);
  if (is_plain) {
    text_ += '"';
    text_ += text;
    text_ += '"';
  } else {
    using nlohmann::json;
    text_ += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }
}

void JsonText::put_null(std::string_view name) {
  begin_value(name);
  text_ += "null";
}

std::string JsonText::take() { return std::move(text_) + '}'; }

}  // namespace diapause::engine
