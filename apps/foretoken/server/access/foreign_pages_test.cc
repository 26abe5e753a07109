#include "apps/foretoken/server/access/foreign_pages.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken::server {
namespace {

bool Foreign(HttpFields fields, std::string_view allowed = "") {
  fields.emplace_back("Host", "127.0.0.1:8080");
  return FromForeignPage({.fields = std::move(fields)}, allowed);
}

TEST(FromForeignPage, ProgramsSayNothingOfPages) {
  EXPECT_FALSE(Foreign({}));
  EXPECT_FALSE(Foreign({{"Content-Type", "application/x-www-form-urlencoded"}}));
}

TEST(FromForeignPage, AFormSaysWhenceItComes) {
  EXPECT_TRUE(Foreign({{"Origin", "https://evil.example"}}));
  EXPECT_TRUE(Foreign({{"Origin", "null"}}));                   // A sandboxed frame's, say.
  EXPECT_TRUE(Foreign({{"Origin", "http://127.0.0.1:3000"}}));  // Another server here.
  EXPECT_TRUE(Foreign({{"Origin", "http://127.0.0.1:8080.evil.example"}}));
  EXPECT_TRUE(Foreign({{"Sec-Fetch-Site", "cross-site"}}));
  EXPECT_TRUE(Foreign({{"Sec-Fetch-Site", "same-site"}}));
  // What the browser says itself counts for more than an origin that looks like our own.
  EXPECT_TRUE(Foreign({{"Origin", "http://127.0.0.1:8080"}, {"Sec-Fetch-Site", "cross-site"}}));
}

TEST(FromForeignPage, TheServersOwnPageAndThoseAllowedAreNot) {
  EXPECT_FALSE(Foreign({{"Origin", "http://127.0.0.1:8080"}}));
  EXPECT_FALSE(Foreign({{"Origin", "http://127.0.0.1:8080"}, {"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_FALSE(Foreign({{"Sec-Fetch-Site", "none"}}));
  EXPECT_FALSE(Foreign({{"Origin", "http://a.example"}}, "http://a.example"));
  EXPECT_FALSE(Foreign({{"Origin", "http://a.example"}, {"Sec-Fetch-Site", "cross-site"}}, "*"));
  EXPECT_TRUE(Foreign({{"Origin", "http://b.example"}}, "http://a.example"));
}

TEST(SaysJson, WhateverItsCaseAndParameters) {
  const auto says = [](const std::string& type) {
    return SaysJson({.fields = {{"Content-Type", type}}});
  };
  EXPECT_TRUE(says("application/json"));
  EXPECT_TRUE(says("Application/JSON"));
  EXPECT_TRUE(says("application/json; charset=utf-8"));
  EXPECT_TRUE(says("application/json ;charset=UTF-8"));
  EXPECT_FALSE(says("text/plain"));
  EXPECT_FALSE(says("text/plain; application/json"));
  EXPECT_FALSE(says("application/jsonp"));
  EXPECT_FALSE(says(""));
  EXPECT_FALSE(SaysJson({}));
}

}  // namespace
}  // namespace foretoken::server
