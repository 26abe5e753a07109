#include "json/ordered_json.h"

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace foretoken {
namespace {

class OrderedBuilder : public nlohmann::json_sax<OrderedJson> {
 public:
  OrderedJson Take() { return std::move(root_); }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // No text has any.
  bool start_object(std::size_t) override { return Open(OrderedJson::object()); }
  bool start_array(std::size_t) override { return Open(OrderedJson::array()); }
  bool key(string_t& name) override {
    name_ = std::move(name);
    return true;
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  // An object or array that is open. What is around it does not grow meanwhile, so it stays where
  // it is.
  struct Opened {
    OrderedJson* value;
    // The place of each member, where it is an object.
    std::unordered_map<std::string, std::size_t> places;
  };

  bool Add(OrderedJson value) {
    Place(std::move(value));
    return true;
  }
  bool Open(OrderedJson value) {
    OrderedJson* const placed = Place(std::move(value));
    open_.push_back({placed, {}});
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  OrderedJson* Place(OrderedJson value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Opened& around = open_.back();
    if (around.value->is_array()) {
      around.value->push_back(std::move(value));
      return &around.value->back();
    }
    auto& members = around.value->get_ref<OrderedJson::object_t&>();
    const auto [place, is_new] = around.places.emplace(name_, members.size());
    if (is_new) {
      members.emplace_back(std::move(name_), std::move(value));
      return &members.back().second;
    }
    // Given twice, the later one counts, in the place of the first.
    OrderedJson& member = (members.begin() + static_cast<std::ptrdiff_t>(place->second))->second;
    member = std::move(value);
    return &member;
  }

  OrderedJson root_;
  std::vector<Opened> open_;
  std::string name_;
};

}  // namespace

OrderedJson ParseOrdered(std::string_view text) {
  OrderedBuilder builder;
  if (!OrderedJson::sax_parse(text, &builder)) return OrderedJson(OrderedJson::value_t::discarded);
  return builder.Take();
}

}  // namespace foretoken
