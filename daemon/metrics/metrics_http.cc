#include "daemon/metrics/metrics_http.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "daemon/connections/await_end.h"
#include "daemon/metrics/metrics_listen.h"

namespace xschedd {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Stream = beast::basic_stream<asio::generic::stream_protocol>;

constexpr std::chrono::milliseconds kNoTokenPause{50};
constexpr std::chrono::milliseconds kNoDescriptorPause{200};
constexpr double kAcceptsBurst = 64;
// How long, and how much, of a refused request is still read: closing a socket with unread data would discard the
// refusal.
constexpr std::chrono::seconds kDrainLimit{1};
constexpr int kMaxDrainReads = 16;

constexpr char kPlain[] = "text/plain; charset=utf-8";

std::string_view PathOf(std::string_view target) {
  return target.substr(0, target.find('?'));
}

}  // namespace

// One connection, and the one request on it.
class MetricsHttp::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(MetricsHttp& server, UniqueFd socket, int family)
      : server_(server), stream_(server.io_), buffer_(kMaxHeader) {
    stream_.socket().assign(asio::generic::stream_protocol(family, 0), socket.Release());
    parser_.header_limit(kMaxHeader);
    parser_.body_limit(0);
  }

  void Begin() {
    stream_.expires_after(kReadLimit);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](error_code error, std::size_t) { self->OnRequest(error); });
  }

  void Close() {
    closed_ = true;
    error_code ignored;
    stream_.socket().close(ignored);
  }

 private:
  MetricsCounts& Counts() { return server_.collector_.Counts(); }

  void OnRequest(const error_code& error) {
    if (closed_) return;
    if (error == beast::error::timeout) ++Counts().timed_out;
    if (error && error.category() != http::make_error_code(http::error::bad_target).category()) return End();
    if (error == http::error::end_of_stream) return End();
    if (error) {
      // The buffer is no smaller than this limit, so the limit is reached first.
      const bool is_long = error == http::error::header_limit;
      return Refuse(
          is_long ? http::status::request_header_fields_too_large : http::status::bad_request,
          is_long ? "the request's headers are too long\n" : "this is not a request for metrics; use GET /metrics\n");
    }
    const auto& request = parser_.get();
    const std::string_view path = PathOf({request.target().data(), request.target().size()});
    is_head_ = request.method() == http::verb::head;
    if (!is_head_ && request.method() != http::verb::get) {
      return Refuse(http::status::method_not_allowed, "only GET and HEAD are allowed\n");
    }
    if (path == "/") return Answer(http::status::ok, kPlain, Own("xschedd: metrics are at /metrics\n"));
    if (path != "/metrics") return Refuse(http::status::not_found, "not found; metrics are at /metrics\n");
    const beast::string_view accepted = request[http::field::accept];
    const bool is_open = accepted.find("application/openmetrics-text") != beast::string_view::npos;
    const MetricFormat format = is_open ? MetricFormat::kOpenMetrics : MetricFormat::kPrometheus;
    server_.collector_.Collect(format, [self = shared_from_this(), format](const MetricsCollector::Text& text) {
      if (self->closed_) return;
      if (text == nullptr) return self->End();
      ++self->Counts().over_http;
      self->Answer(http::status::ok, ContentType(format), text);
    });
  }

  static MetricsCollector::Text Own(const char* text) { return std::make_shared<const std::string>(text); }

  void Refuse(http::status status, const char* why) {
    ++Counts().bad_requests;
    refused_ = true;
    Answer(status, kPlain, Own(why));
  }

  void Answer(http::status status, std::string_view type, MetricsCollector::Text text) {
    text_ = std::move(text);
    stream_.expires_after(kWriteLimit);
    const auto fill = [&](auto& answer) {
      answer.version(11);
      answer.result(status);
      answer.set(http::field::content_type, beast::string_view(type.data(), type.size()));
      answer.set(http::field::cache_control, "no-store");
      answer.set("X-Content-Type-Options", "nosniff");
      if (status == http::status::method_not_allowed) answer.set(http::field::allow, "GET, HEAD");
      answer.keep_alive(false);
      answer.content_length(text_->size());
      http::async_write(stream_, answer,
                        [self = shared_from_this()](error_code error, std::size_t) { self->OnWritten(error); });
    };
    if (is_head_) return fill(head_.emplace());
    answer_.emplace().body() = {text_->data(), text_->size()};
    fill(*answer_);
  }

  void OnWritten(const error_code& error) {
    if (closed_) return;
    if (error == beast::error::timeout) ++Counts().timed_out;
    if (error) return End();
    error_code ignored;
    stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
    if (!refused_) return End();
    stream_.expires_after(kDrainLimit);
    Drain();
  }

  void Drain() {
    stream_.async_read_some(asio::buffer(drained_), [self = shared_from_this()](const error_code& error, std::size_t) {
      if (self->closed_) return;
      if (error || ++self->drains_ == kMaxDrainReads) return self->End();
      self->Drain();
    });
  }

  void End() {
    Close();
    server_.sessions_.remove(shared_from_this());
  }

  MetricsHttp& server_;  // lives as long as the loop runs
  Stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  MetricsCollector::Text text_;
  std::optional<http::response<http::span_body<const char>>> answer_;
  std::optional<http::response<http::empty_body>> head_;
  char drained_[1024];
  int drains_ = 0;
  bool is_head_ = false;
  bool refused_ = false;
  bool closed_ = false;
};

MetricsHttp::MetricsHttp(asio::io_context& io, MetricsCollector& collector)
    : io_(io), collector_(collector), listening_(io), pause_(io), accepts_(kAcceptsPerS, kAcceptsBurst) {}

MetricsHttp::~MetricsHttp() {
  Stop();
}

void MetricsHttp::Start(UniqueFd listening) {
  Stop();
  address_ = ListensAt(listening.Get());
  listening_.assign(listening.Release());
  Await();
}

void MetricsHttp::Stop() {
  pause_.cancel();
  CloseForGood(listening_);
  address_.clear();
  for (const auto& session : std::exchange(sessions_, {}))
    session->Close();
}

void MetricsHttp::Await() {
  listening_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
    if (!error && listening_.is_open()) Accept();
  });
}

void MetricsHttp::PauseAccepting(std::chrono::milliseconds pause) {
  pause_.expires_after(pause);
  pause_.async_wait([this](const error_code& error) {
    if (!error && listening_.is_open()) Await();
  });
}

// One connection at a time, so that the loop does other work in between.
void MetricsHttp::Accept() {
  if (!accepts_.Take(MonotonicNs())) return PauseAccepting(kNoTokenPause);
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  UniqueFd socket(
      ::accept4(listening_.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.IsValid()) {
    const bool is_gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    return is_gone ? Await() : PauseAccepting(kNoDescriptorPause);
  }
  if (sessions_.size() >= kMaxConnections) {
    ++collector_.Counts().displaced;
    sessions_.front()->Close();
    sessions_.pop_front();
  }
  sessions_.push_back(std::make_shared<Session>(*this, std::move(socket), peer.ss_family));
  sessions_.back()->Begin();
  Await();
}

}  // namespace xschedd
