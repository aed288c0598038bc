#pragma once
// One HTTP/1 request out of bytes as they come. The seam to the library's parser.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace furlong::fleet {

/// Why a request is not answered as it wants to be.
struct Refusal {
  int status = 0;       ///< 0: it is not refused
  std::string message;  ///< nothing of the client's own in it
  explicit operator bool() const { return status != 0; }
};

struct RequestHead {
  std::string method;
  std::string target;                                        ///< as it came
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case
  bool http_1_1 = true;
  bool keep_alive = false;
  bool chunked = false;
  std::uint64_t length = 0;  ///< of the body; 0 where there is none and where it is chunked
  bool expects_continue = false;
  bool has_body() const { return chunked || length > 0; }
};

/// Not thread safe. What is refused: whatever is not HTTP/1.0 or 1.1 to the letter, and whatever two servers
/// could take for different requests (400); a head of too many bytes or fields (431); an expectation that is
/// not known (417).
class RequestReader {
 public:
  enum class Stage { head, body, complete, refused };
  /// Takes a piece of the body; what it refuses ends the reading.
  using Sink = std::function<Refusal(std::string_view piece)>;

  virtual ~RequestReader() = default;
  /// Reads on and says how many of the bytes it took: all of them, or those up to the end of the head, of the
  /// request, or to where it is refused.
  virtual std::size_t feed(std::string_view bytes) = 0;
  virtual Stage stage() const = 0;
  virtual const RequestHead& head() const = 0;  ///< whole from Stage::body on; may be moved from
  virtual RequestHead& head() = 0;
  virtual const Refusal& refusal() const = 0;
  /// Before the first byte of the body is fed.
  virtual void set_sink(Sink sink) = 0;

  static std::unique_ptr<RequestReader> make(std::size_t most_header_bytes);
};

/// More fields are refused: each costs far more memory than its few bytes.
constexpr std::size_t most_header_fields = 128;

}  // namespace furlong::fleet
