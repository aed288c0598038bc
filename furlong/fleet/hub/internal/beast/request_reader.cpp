// Beast's parser, and around it the rules that it does not have: it accepts folded lines, several equal
// Content-Lengths, a Transfer-Encoding that is not "chunked" before a Content-Length, chunks in HTTP/1.0, and
// control characters in a chunk's quoted extension. Each of them is read differently by some proxy.
#include "furlong/fleet/hub/internal/http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>

#include "furlong/fleet/hub/internal/http/head_scanner.h"

namespace furlong::fleet {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

std::string lower(string_view text) {
  std::string out(text.data(), text.size());
  for (char& letter : out)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return out;
}

class Parser : public http::basic_parser<true> {
 public:
  RequestHead head;
  Refusal refusal;
  RequestReader::Sink sink;

 private:
  void on_request_impl(http::verb, string_view method, string_view target, int version,
                       error_code&) override {
    head.method.assign(method.data(), method.size());
    head.target.assign(target.data(), target.size());
    head.http_1_1 = version >= 11;
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(http::field, string_view name, string_view value, error_code& error) override {
    if (trailer_) return;  // after the guard has seen the head, nothing is added to it
    if (head.headers.size() == most_header_fields) {
      refusal = {431, fmt_fields};
      error = http::error::header_limit;
      return;
    }
    head.headers.emplace_back(lower(name), std::string(value.data(), value.size()));
  }
  void on_header_impl(error_code&) override { trailer_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view piece, error_code& error) override { return pass(piece, error); }
  void on_chunk_header_impl(std::uint64_t, string_view extension, error_code& error) override {
    for (const char byte : extension)
      if ((static_cast<unsigned char>(byte) < 0x20 && byte != '\t') || byte == 0x7f)
        error = http::error::bad_chunk_extension;
  }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view piece, error_code& error) override {
    return pass(piece, error);
  }
  void on_finish_impl(error_code&) override {}

  std::size_t pass(string_view piece, error_code& error) {
    if (sink) refusal = sink({piece.data(), piece.size()});
    if (refusal) error = http::error::body_limit;
    return piece.size();
  }

  static constexpr const char* fmt_fields = "the request has too many header fields";
  bool trailer_ = false;
};

class BeastRequestReader : public RequestReader {
 public:
  explicit BeastRequestReader(std::size_t most_header_bytes) : most_header_bytes_(most_header_bytes) {
    parser_.header_limit(std::numeric_limits<std::uint32_t>::max());  // both limits are kept here
    parser_.body_limit(boost::none);
  }

  std::size_t feed(std::string_view bytes) override {
    if (stage_ == Stage::head) return feed_head(bytes);
    if (stage_ == Stage::body && !bytes.empty()) return feed_body(bytes);
    return 0;
  }
  Stage stage() const override { return stage_; }
  const RequestHead& head() const override { return parser_.head; }
  RequestHead& head() override { return parser_.head; }
  const Refusal& refusal() const override { return parser_.refusal; }
  void set_sink(Sink sink) override { parser_.sink = std::move(sink); }

 private:
  std::size_t feed_head(std::string_view bytes) {
    std::size_t taken = 0;
    const auto found = scanner_.feed(bytes, taken);
    if (pending_.size() + taken > most_header_bytes_) {
      refuse(431, "the request's header is too large");
      return taken;
    }
    pending_.append(bytes.substr(0, taken));
    switch (found) {
      case HeadScanner::Found::more:
        break;
      case HeadScanner::Found::folded:
        refuse(400, "the request's header has a folded line");
        break;
      case HeadScanner::Found::control:
        refuse(400, "the request's header has a control character, or none of it is HTTP");
        break;
      case HeadScanner::Found::line_end:
        refuse(400, "a line of the request's header does not end in CR LF");
        break;
      case HeadScanner::Found::end:
        parse_head();
        break;
    }
    return taken;
  }

  void parse_head() {
    error_code error;
    const std::string_view text = std::string_view(pending_).substr(scanner_.blank_bytes());
    const std::size_t read = parser_.put(boost::asio::const_buffer(text.data(), text.size()), error);
    if (error || read != text.size() || !parser_.is_header_done()) {
      if (!parser_.refusal) refuse(400, "the request's header is malformed");
      stage_ = Stage::refused;
      return;
    }
    pending_ = {};
    parser_.head.keep_alive = parser_.keep_alive();
    if (Refusal refusal = check_fields()) return refuse(refusal.status, std::move(refusal.message));
    parser_.eager(true);
    stage_ = parser_.is_done() ? Stage::complete : Stage::body;
  }

  /// What is right to Beast but not to us; fills in what the fields say.
  Refusal check_fields() {
    RequestHead& head = parser_.head;
    std::size_t hosts = 0, lengths = 0, encodings = 0;
    for (const auto& [name, value] : head.headers) {
      if (name == "host") {
        ++hosts;
      } else if (name == "content-length") {
        ++lengths;
        if (value.find_first_not_of("0123456789") != std::string::npos)
          return {400, "Content-Length is no number"};
      } else if (name == "transfer-encoding") {
        ++encodings;
        if (lower(value) != "chunked") return {400, "Transfer-Encoding is not 'chunked'"};
      } else if (name == "expect") {
        if (lower(value) != "100-continue") return {417, "Expect is not '100-continue'"};
        head.expects_continue = head.http_1_1;
      }
    }
    if (hosts > 1 || (hosts == 0 && head.http_1_1)) return {400, "the request does not name one Host"};
    if (lengths > 1) return {400, "the request has several Content-Lengths"};
    if (encodings > 1 || (encodings == 1 && lengths == 1))
      return {400, "the request says its length in two ways"};
    if (encodings == 1 && !head.http_1_1) return {400, "HTTP/1.0 has no Transfer-Encoding"};
    head.chunked = encodings == 1;
    head.length = lengths == 1 ? parser_.content_length().value_or(0) : 0;
    return {};
  }

  std::size_t feed_body(std::string_view bytes) {
    // A chunk's header and the trailer are only read whole: what is left of the last bytes stands before
    // these.
    const bool joined = !pending_.empty();
    if (joined) pending_.append(bytes);
    const std::string_view text = joined ? std::string_view(pending_) : bytes;
    error_code error;
    const std::size_t read = parser_.put(boost::asio::const_buffer(text.data(), text.size()), error);
    if (error && error != http::error::need_more) {
      if (!parser_.refusal) refuse(400, "the request's body is malformed");
      stage_ = Stage::refused;
      return bytes.size();
    }
    const std::size_t left = text.size() - read;
    if (parser_.is_done()) {
      stage_ = Stage::complete;
      pending_ = {};
      return bytes.size() - std::min(left, bytes.size());
    }
    if (left > most_header_bytes_) {
      refuse(400, "the header or the trailer of a chunk is too large");
      return bytes.size();
    }
    joined ? pending_.erase(0, read) : pending_.assign(text.substr(read));
    return bytes.size();
  }

  void refuse(int status, std::string message) {
    parser_.refusal = {status, std::move(message)};
    stage_ = Stage::refused;
  }

  const std::size_t most_header_bytes_;
  Parser parser_;
  HeadScanner scanner_;
  Stage stage_ = Stage::head;
  std::string pending_;  // of the head; later of a chunk's header
};

}  // namespace

std::unique_ptr<RequestReader> RequestReader::make(std::size_t most_header_bytes) {
  return std::make_unique<BeastRequestReader>(most_header_bytes);
}

}  // namespace furlong::fleet
