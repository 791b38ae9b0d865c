// The figures of the pages: what is drawn, where, and in which colours.
#include "figure/figure.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "figure/axes.hpp"
#include "figure/heat_cells.hpp"
#include "support/refuses.hpp"

namespace t2t::figure_tests {

static constexpr float infinity = std::numeric_limits<float>::infinity();

static size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("by hand: a figure has its title, its description and what is drawn, in this order") {
  Figure figure(100, 50.25, "Two marks", "A box and a word.");
  figure.box({1, 2, 30, 40}, Tone::first, 0.5);
  figure.text({9.96, 20}, "word", {Tone::quiet, Anchor::end, 12});
  const std::string svg = figure.svg();
  CHECK(
      svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 50.3\" "
                      "width=\"100\" height=\"50.3\" role=\"img\">\n<title>Two marks</title>\n"
                      "<desc>A box and a word.</desc>\n<style>\n"));
  CHECK(
      svg.ends_with("</style>\n"
                    "<rect class=\"first\" x=\"1\" y=\"2\" width=\"30\" height=\"40\" "
                    "opacity=\"0.5\"/>\n"
                    "<text class=\"quiet\" x=\"10\" y=\"20\" text-anchor=\"end\" "
                    "font-size=\"12\">word</text>\n</svg>\n"));
}

TEST_CASE("by hand: lines go through their places, and an arrow's head is at the last") {
  Figure figure(100, 50, "Lines", "A line, a frame, a circle and an arrow.");
  figure.line({{0, 0}, {10, 5}, {-0.04, 7}}, {.width = 2, .dashed = true});
  figure.frame({1, 2, 3, 4});
  figure.circle({5, 6.5}, 3);
  figure.arrow({{50, 10}, {50, 30}}, {Tone::ink});
  const std::string svg = figure.svg();
  CHECK(count(svg,
              "<path class=\"quiet\" stroke-width=\"2\" stroke-dasharray=\"5 4\" "
              "d=\"M0 0 10 5 0 7\"/>\n") == 1);
  CHECK(count(svg, "<path class=\"quiet\" d=\"M1 2 4 2 4 6 1 6Z\"/>\n") == 1);
  CHECK(count(svg, "<circle class=\"quiet\" cx=\"5\" cy=\"6.5\" r=\"3\"/>\n") == 1);
  CHECK(count(svg, "<path class=\"ink\" d=\"M50 10 50 30\"/>\n") == 1);
  CHECK(count(svg, "<polygon class=\"head ink\" points=\"50,30 46,22 54,22\"/>\n") == 1);
  REFUSES(figure.arrow({{1, 1}}), "places of an arrow: wanted at least 2, got 1");
}

TEST_CASE("halves of a tenth are rounded up, also where a processor finds a little less") {
  Figure figure(10, 10, "Halves", "Two places.");
  figure.line({{0.25, 0.35}, {0.25 - 1e-12, 0.35 - 1e-12}});
  CHECK(count(figure.svg(), "d=\"M0.3 0.4 0.3 0.4\"") == 1);
}

TEST_CASE("words may hold any characters") {
  Figure figure(10, 10, "a < b & \"c\"", "d > e\n\x01");
  figure.text({0, 0}, "<script>&amp;\x7f");
  const std::string svg = figure.svg();
  CHECK(count(svg, "<title>a &lt; b &amp; &quot;c&quot;</title>") == 1);
  CHECK(count(svg, "<desc>d &gt; e  </desc>") == 1);
  CHECK(count(svg, ">&lt;script&gt;&amp;amp; </text>") == 1);
}

TEST_CASE("a strength outside of 0 to 1 is refused, and so is none") {
  Figure figure(10, 10, "Strengths", "None.");
  const std::string before = figure.svg();
  const Box box = {0, 0, 1, 1};
  REFUSES(figure.box(box, Tone::first, -0.01), "strength: wanted a number from 0 to 1, got -0.01");
  REFUSES(figure.box(box, Tone::first, 1.01), "strength: wanted a number from 0 to 1, got 1.01");
  REFUSES(figure.box(box, Tone::first, std::nan("")),
          "strength: wanted a number from 0 to 1, got nan");
  CHECK(figure.svg() == before);
}

/// The luminance of "#rrggbb", or of "#rgb", as the guidelines for accessible pages (WCAG 2) define
/// it.
static double luminance(std::string colour) {
  if (colour.size() == 4)
    colour = {'#', colour[1], colour[1], colour[2], colour[2], colour[3], colour[3]};
  const double shares[] = {0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    sum += shares[i] * (c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return sum;
}
static double contrast(const std::string& a, const std::string& b) {
  const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

TEST_CASE("each tone can be read on its page, light or dark, and paper on each tone") {
  const std::string svg = Figure(1, 1, "Tones", "None.").svg();
  const size_t dark = svg.find("@media(prefers-color-scheme:dark)");
  REQUIRE(dark != svg.npos);
  for (const bool light : {true, false})
    for (const char* tone : {"ink", "quiet", "first", "second", "third"}) {
      const auto colour_of = [&](const std::string& name) {
        const size_t at = svg.find("." + name + "{color:", light ? 0 : dark);
        const size_t from = svg.find('#', at);
        return svg.substr(from, svg.find('}', from) - from);
      };
      CAPTURE(tone);
      CHECK(contrast(colour_of(tone), light ? "#ffffff" : "#131416") >= 4.5);
      CHECK(contrast(colour_of(tone), colour_of("paper")) >= 4.5);
    }
}

TEST_CASE("by hand: places on a scale") {
  const Scale plain = {2, 6, 100, 20};
  CHECK(plain.at(2) == 100);
  CHECK(plain.at(3) == 80);
  CHECK(plain.at(6) == 20);
  const Scale factors = {1, 100, 0, 50, true};
  CHECK(factors.at(10) == doctest::Approx(25));
  const Axes axes{{0, 10, 50, 150}, {0, 1, 100, 0}, {{5, "five"}}, {{0.5, "half"}}, "x", "y"};
  CHECK(places_of(axes, {{5, 0.5}})[0].x == 100);
  CHECK(places_of(axes, {{5, 0.5}})[0].y == 50);
  Figure figure(200, 150, "Axes", "None.");
  draw_axes(figure, axes);
  CHECK(count(figure.svg(), "x=\"100\" y=\"118\" text-anchor=\"middle\" font-size=\"13\">five<") ==
        1);
  CHECK(count(figure.svg(), "x=\"44\" y=\"54.5\" text-anchor=\"end\" font-size=\"13\">half<") == 1);
}

TEST_CASE("heat cells say their shares, and what is masked stays empty") {
  Figure figure(200, 200, "Cells", "None.");
  const Tensor<2> shares = {{1, -infinity}, {0.25f, 0.75f}};
  draw_heat_cells(figure, shares, {{50, 60}, 34, {"a", "b"}, {"c", "d"}});
  const std::string svg = figure.svg();
  CHECK(count(svg, "<rect") == 3);
  for (const char* words : {">100<", ">25<", ">75<", ">a<", ">b<", ">c<", ">d<"})
    CHECK(count(svg, words) == 1);
  CHECK(count(svg, "<rect class=\"first\" x=\"84\" y=\"94\" width=\"33\" height=\"33\"") == 1);
  for (const auto& [wrong, said] :
       {std::pair(1.5f, "1.5"), {-0.5f, "-0.5"}, {infinity, "inf"}, {std::nanf(""), "nan"}}) {
    const Tensor<2> one = {{wrong}};
    REFUSES(draw_heat_cells(figure, one, {.corner = {0, 0}}),
            "a share: wanted a number from 0 to 1, got " + std::string(said));
  }
  CHECK(figure.svg() == svg);
}

}  // namespace t2t::figure_tests
