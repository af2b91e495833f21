#include "tests/fault/helpers/raw_client.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "common/preamble_client.h"
#include "session.pb.h"

namespace xschedd::fault {
namespace {

constexpr int kAnswerLimitMs = 30'000;
enum FrameType : char { kData = 0, kHeaders = 1, kSettings = 4 };
constexpr char kEndHeaders = 4;

std::string Frame(FrameType type, char flags, std::uint32_t stream, const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0})
    frame += static_cast<char>((payload.size() >> shift) & 0xff);
  frame += static_cast<char>(type);
  frame += flags;
  const std::uint32_t number = htonl(stream);
  frame.append(reinterpret_cast<const char*>(&number), sizeof number);
  return frame + payload;
}

std::string Text(const std::string& value) {  // HPACK: not compressed, shorter than 127 bytes
  return static_cast<char>(value.size()) + value;
}

// HPACK: an index of the static table if that has the whole header, else a literal without indexing.
std::string SessionHeaders() {
  std::string block("\x83\x86", 2);                             // :method POST, :scheme http
  block += '\x04' + Text("/xschedd.v1.ClientSession/Session");  // :path
  block += '\x01' + Text("xschedd");                            // :authority
  block += std::string("\x0f\x10", 2) + Text("application/grpc");
  block += std::string(1, '\0') + Text("te") + Text("trailers");
  return Frame(kHeaders, kEndHeaders, 1, block);
}

std::string Message(const v1::ClientMessage& message) {
  const std::string bytes = message.SerializeAsString();
  const std::uint32_t size = htonl(static_cast<std::uint32_t>(bytes.size()));
  std::string payload(1, '\0');  // not compressed
  payload.append(reinterpret_cast<const char*>(&size), sizeof size);
  return Frame(kData, 0, 1, payload + bytes);
}

bool ReadAll(int socket, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(socket, to, size, 0);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

std::unique_ptr<RawClient> RawClient::Connect(const std::string& runtime_dir) {
  std::unique_ptr<RawClient> client(new RawClient());
  client->socket_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (runtime_dir + "/client.sock").copy(address.sun_path, sizeof address.sun_path - 1);
  const int socket = client->socket_.Get();
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return nullptr;
  auto welcomed = SayHello(socket, MakeHello(), kAnswerLimitMs);
  if (!welcomed || welcomed->welcome.status != PreambleStatus::kOk) return nullptr;
  auto board = MapSharedMemory(welcomed->descriptors[0].Get(), sizeof(abi::Board), Access::kReadOnly);
  auto ledger = MapSharedMemory(welcomed->descriptors[1].Get(), sizeof(abi::Ledger), Access::kReadWrite);
  if (!board || !ledger) return nullptr;
  client->board_mapping_ = std::move(*board);
  client->ledger_mapping_ = std::move(*ledger);
  client->eventfd_ = std::move(welcomed->descriptors[2]);
  const auto* raw = static_cast<const abi::Board*>(client->board_mapping_.Address());
  auto reader = BoardReader::Open(raw);
  auto writer = LedgerWriter::Open(client->Raw(), raw, client->eventfd_.Get());
  if (!reader || !writer) return nullptr;
  client->board_ = *reader;
  client->ledger_.reset(*writer);
  client->token_.assign(welcomed->welcome.token, sizeof welcomed->welcome.token);
  return client;
}

bool RawClient::Open(int priority, const std::string& pci_address) {
  v1::ClientMessage hello;
  hello.mutable_hello()->set_client_version("churn");
  hello.mutable_hello()->set_runtime("none");
  hello.mutable_hello()->set_token(token_);
  hello.mutable_hello()->set_priority_hint(priority);
  v1::ClientMessage attached;
  attached.mutable_device_attached()->set_slot(0);
  attached.mutable_device_attached()->set_pci_address(pci_address);
  attached.mutable_device_attached()->set_name("no device (churn)");
  attached.mutable_device_attached()->set_vendor("amd");
  const std::string all = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, "") + SessionHeaders() +
                          Message(hello) + Message(attached);
  return ::send(socket_.Get(), all.data(), all.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(all.size());
}

bool RawClient::AwaitWelcome() {
  said_.clear();
  char head[9];
  while (ReadAll(socket_.Get(), head, sizeof head)) {
    std::size_t size = 0;
    for (int i = 0; i < 3; ++i)
      size = size << 8 | static_cast<unsigned char>(head[i]);
    std::string payload(size, '\0');
    if (!ReadAll(socket_.Get(), payload.data(), size)) return false;
    if (head[3] == kData && size > 0) return true;
    said_ += " frame " + std::to_string(head[3]) + " \"";
    for (const char byte : payload)
      said_ += byte >= ' ' && byte <= '~' ? byte : '.';
    said_ += '"';
  }
  said_ += " end: ";
  said_ += std::strerror(errno);
  return false;
}

}  // namespace xschedd::fault
