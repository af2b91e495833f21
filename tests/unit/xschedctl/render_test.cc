#include <stdlib.h>
#include <time.h>

#include "tests/catch.h"
#include "tools/xschedctl/names.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/render_text.h"

namespace xschedd::ctl {
namespace {

v1::ListClientsResponse Sample() {
  v1::ListClientsResponse answer;
  answer.set_policy("priority");
  v1::Client& held = *answer.add_clients();
  held.set_pid(4711);
  held.set_uid(1000);
  held.set_command("python3 \x1b[31mtrain.py");
  held.set_priority_hint(-20);
  held.set_priority_effective(-50);
  held.set_priority_source(v1::PRIORITY_SOURCE_ADMIN);
  v1::ClientDevice& device = *held.add_devices();
  device.set_device("0000:c1:00.0");
  device.set_state(v1::CLIENT_STATE_HELD);
  device.set_held_ns(1'500'000'000);
  device.set_gpu_time_ns(2'000'000);
  device.set_held_for("pid 4712");
  device.set_recent_ns(1'200'000'000);
  device.set_recent_gpu_ns(300'000'000);
  held.set_weight(300);
  held.set_late(4);
  v1::Client& fresh = *answer.add_clients();
  fresh.set_pid(4712);
  fresh.set_exe("/usr/bin/vllm");
  fresh.set_hold(true);
  v1::Device& gpu = *answer.add_devices();
  gpu.set_pci_address("0000:c1:00.0");
  gpu.set_name("AMD Instinct MI308X");
  gpu.set_clients(2);
  return answer;
}

}  // namespace

TEST_CASE("ps names priorities, their source, the state and the times with units") {
  CHECK(RenderClients(Sample(), {}) ==
        " PID   UID  PRIO  HINT  WEIGHT  SOURCE   DEVICE        STATE            WAITS-FOR    HELD  GPU-TIME     GPU   "
        " SHARE "
        " LATE  IN-FLIGHT  GROUP  COMMAND\n"
        "4711  1000   -50   -20     300  admin    0000:c1:00.0  held             pid 4712   1.50 s   2.00 ms  25.0 %  "
        "100.0 % "
        "    4          0  -      python3 ?[31mtrain.py\n"
        "4712     0     0     -       0  default  -             no device, hold  -               -         -       -   "
        "     - "
        "    -          -  -      /usr/bin/vllm\n");
}

TEST_CASE("ps counts passed calls, if there are any") {
  CHECK(RenderClients(Sample(), {}).find("PASSED") == std::string::npos);
  v1::ListClientsResponse answer = Sample();
  answer.mutable_clients(0)->mutable_devices(0)->set_passthrough(1234);
  answer.mutable_clients(0)->mutable_devices(0)->set_state(v1::CLIENT_STATE_PASSING);
  v1::Passed& passed = *answer.mutable_clients(0)->add_passed();
  passed.set_rule("librccl.so");
  passed.set_count(1230);
  const std::string text = RenderClients(answer, {});
  CHECK(text.find(" LATE  PASSED  IN-FLIGHT") != std::string::npos);
  CHECK(text.find("    4    1234          0") != std::string::npos);
  CHECK(text.find(" passing ") != std::string::npos);
  const Json client = ToJson(answer)["clients"][0];
  CHECK(client["passed"][0]["rule"] == "librccl.so");
  CHECK(client["passed"][0]["count"] == 1230);
  CHECK(client["devices"][0]["passthrough"] == 1234);
  CHECK(client["devices"][0]["state"] == "passing");
}

TEST_CASE("ps shows how others run for a client, where that was measured or set") {
  CHECK(RenderClients(Sample(), {}).find("OTHERS") == std::string::npos);
  v1::ListClientsResponse answer = Sample();
  v1::Benefit& benefit = *answer.mutable_clients(0)->mutable_benefit();
  benefit.set_mode("waits");
  std::string text = RenderClients(answer, {});
  CHECK(text.find(" LATE  OTHERS  IN-FLIGHT") != std::string::npos);
  CHECK(text.find("    4  waits           0") != std::string::npos);
  CHECK(ToJson(answer)["clients"][0]["benefit"]["mode"] == "waits");
  answer.mutable_clients(0)->set_latency("strict");
  text = RenderClients(answer, {});
  CHECK(text.find("    4  strict          0") != std::string::npos);
}

TEST_CASE("explain shows how many calls passed by which rule") {
  v1::ExplainResponse answer;
  answer.set_summary("pid 7 was not held");
  CHECK(RenderExplain(7, answer, {}).find("passed") == std::string::npos);
  v1::Passed& passed = *answer.add_passed();
  passed.set_rule("kernel:*nccl\x1b*");
  passed.set_count(12);
  const std::string text = RenderExplain(7, answer, {});
  CHECK(text.find("passed through ungated by configuration, since it connected:\nCALLS  BY\n   12  kernel:*nccl?*") !=
        std::string::npos);
  CHECK(ToJson(7, answer)["passed"][0]["count"] == 12);
}

TEST_CASE("ps has no column for missed deadlines if there are none") {
  v1::ListClientsResponse answer = Sample();
  answer.mutable_clients(0)->set_late(0);
  const std::string text = RenderClients(answer, {});
  CHECK(text.find("LATE") == std::string::npos);
  CHECK(text.find("100.0 %          0  -") != std::string::npos);
}

TEST_CASE("ps as JSON has the same facts, and null where there is no hint") {
  const Json json = Json::parse(Line(ToJson(Sample())));
  CHECK(json["policy"] == "priority");
  CHECK(json["clients"][0]["priority_hint"] == -20);
  CHECK(json["clients"][0]["priority_admin"].is_null());
  CHECK(json["clients"][0]["devices"][0]["state"] == "held");
  CHECK(json["clients"][0]["devices"][0]["held_ns"] == 1'500'000'000);
  CHECK(json["clients"][1]["priority_hint"].is_null());
  CHECK(json["clients"][1]["hold"] == true);
  CHECK(json["devices"][0]["name"] == "AMD Instinct MI308X");
}

TEST_CASE("JSON is one line, whatever a client calls itself") {
  v1::Event event;
  event.set_reason("line\nbreak \xff\xfe");
  const std::string line = Line(ToJson(event));
  CHECK(line.find('\n') == line.size() - 1);
  CHECK(Json::accept(line));
}

TEST_CASE("a change is shown with the values before and after") {
  v1::ChangeResponse answer;
  auto& change = *answer.add_changes();
  change.set_pid(7);
  change.set_priority_before(5);
  change.set_priority_after(-5);
  change.set_weight_before(100);
  change.set_weight_after(300);
  change.set_note("limited by the ceiling of uid 1000");
  CHECK(RenderChange(answer, false, {}) ==
        "PID  PRIO  NOW  WEIGHT  NOW  HOLD  NOTE\n"
        "  7     5   -5     100  300  no    limited by the ceiling of uid 1000\n");
  change.set_memory_limit_after(std::uint64_t{24} << 30);
  change.set_latency_before("auto");
  change.set_latency_after("strict");
  CHECK(RenderChange(answer, false, {}).find("WEIGHT  NOW  LATENCY  NOW     MEM-LIMIT       NOW  HOLD") !=
        std::string::npos);
  CHECK(RenderChange(answer, false, {}).find("  auto     strict          -  24.0 GiB  no ") != std::string::npos);
  CHECK(ToJson(answer, true)["changes"][0]["memory_limit_before"].is_null());
  CHECK(ToJson(answer, true)["changes"][0]["memory_limit_after"] == std::uint64_t{24} << 30);
  CHECK(RenderChange(answer, true, {}).find("WOULD-BE") != std::string::npos);
  CHECK(ToJson(answer, true)["dry_run"] == true);
}

TEST_CASE("an event is one line: time, kind, client, device, reason") {
  setenv("TZ", "UTC", 1);
  tzset();
  v1::Event event;
  event.set_unix_ms(1'000'000'000'007);
  event.set_kind(v1::EVENT_KIND_HELD);
  event.set_pid(4711);
  event.set_device("0000:c1:00.0");
  event.set_reason("pid 4712 (priority 50) is busy");
  CHECK(RenderEvent(event) ==
        "01:46:40.007  held             pid 4711  0000:c1:00.0  pid 4712 (priority 50) is busy\n");
  event.set_claim("slurm-17");
  CHECK(RenderEvent(event).find("  pid 4711 (slurm-17)  0000:c1:00.0  ") != std::string::npos);
  event.set_claim_text("job 17.0");
  (*event.mutable_labels())["job"] = "17";
  CHECK(RenderEvent(event).find("  pid 4711 (job 17.0)  0000:c1:00.0  ") != std::string::npos);
  CHECK(Line(ToJson(event)).find(R"("claim":"slurm-17","labels":{"job":"17"})") != std::string::npos);
  v1::Event lost;
  lost.set_kind(v1::EVENT_KIND_LOST);
  lost.set_count(12);
  CHECK(RenderEvent(lost).find("12 events left out here") != std::string::npos);
}

TEST_CASE("a policy's settings are shown with units, and zero with its meaning") {
  v1::Policy policy;
  policy.set_name("priority");
  policy.set_linger_us(500);
  policy.set_window_us(2000);
  policy.set_share_slack_us(5000);
  policy.set_fair_quantum_ms(20);
  policy.set_time_slices("auto");
  policy.add_available("priority");
  policy.add_available("fifo");
  const std::string text = RenderPolicy(policy);
  CHECK(text.find("priority (available: priority, fifo)") != std::string::npos);
  CHECK(text.find("linger          500us   how long the others stay held") != std::string::npos);
  CHECK(text.find("window          2ms     GPU time that clients below the most important") != std::string::npos);
  CHECK(text.find("top-window      0       no limit\n") != std::string::npos);
  CHECK(text.find("share-slack     5ms     share: GPU time by which a client may be ahead") != std::string::npos);
  CHECK(text.find("fair-quantum    20ms    fair: GPU time after which") != std::string::npos);
  CHECK(text.find("time-slices     auto    where a device gives") != std::string::npos);
  CHECK(text.find("guard           0       off, and a program") != std::string::npos);
  CHECK(text.find("max-concurrent  0       no limit\n") != std::string::npos);
}

TEST_CASE("explain shows times, causes, the last holds and remedies") {
  v1::ExplainResponse answer;
  answer.set_command("python3 train.py");
  answer.set_summary("pid 7 (priority 0, weight 100): in the last 1.0 s it was held for 25.0 % of the time");
  answer.set_weight(100);
  answer.set_held_ns(250'000'000);
  answer.set_observed_ns(1'000'000'000);
  answer.set_time_ns(1'310'000'000);
  auto& device = *answer.add_devices();
  device.set_device("0000:c1:00.0");
  device.set_observed_ns(1'000'000'000);
  device.set_held_ns(250'000'000);
  device.set_running_ns(750'000'000);
  device.set_gpu_ns(400'000'000);
  device.set_gpu_all_ns(1'000'000'000);
  device.set_gpu_level_ns(800'000'000);
  device.set_weight_all(400);
  auto& cause = *answer.add_causes();
  cause.set_device("0000:c1:00.0");
  cause.set_reason("priority: pid 8 (priority 50) was busy here");
  cause.set_count(25);
  cause.set_total_ns(250'000'000);
  cause.set_longest_ns(10'000'000);
  auto& remedy = *answer.add_remedies();
  remedy.set_text("let it run beside pid 8 as its equal");
  remedy.set_command("xschedctl set 7 --priority 50");
  for (std::uint64_t i = 0; i < 16; ++i) {
    auto& span = *answer.add_held();
    span.set_start_ns(i * 20'000'000);
    span.set_end_ns(i * 20'000'000 + 10'000'000);
    span.set_reason("pid 8 (priority 50) is busy");
  }
  const std::string text = RenderExplain(7, answer, {});
  CHECK(text.find("pid 7: python3 train.py\npid 7 (priority 0") == 0);
  CHECK(text.find("0000:c1:00.0  750 ms  75.0 %  250 ms  25.0 %  0 s   0.0 %  0 s   0.0 %  0 s   0.0 %  400 ms  40.0 % "
                  "    40.0 %     "
                  "50.0 %     25.0 %     -\n") != std::string::npos);
  CHECK(text.find("250 ms  100.0 %     25  10.0 ms  0000:c1:00.0  priority: pid 8 (priority 50) was busy here\n") !=
        std::string::npos);
  // The last one began at 300 ms.
  CHECK(text.find("1.01 s  10.0 ms          pid 8 (priority 50) is busy\n(8 earlier") != std::string::npos);
  CHECK(text.find("(8 earlier ones: see --json)") != std::string::npos);
  CHECK(text.find("what to do:\n  let it run beside pid 8 as its equal\n      xschedctl set 7 --priority 50\n") !=
        std::string::npos);
  const Json json = ToJson(7, answer);
  CHECK(json["held"].size() == 16);
  CHECK(json["causes"][0]["count"] == 25);
  CHECK(json["devices"][0]["gpu_level_ns"] == 800'000'000);
  CHECK(json["remedies"][0]["command"] == "xschedctl set 7 --priority 50");
}

TEST_CASE("unknown values from a newer daemon are shown as unknown") {
  CHECK(Name(static_cast<v1::ClientState>(99)) == "unknown");
  CHECK(Name(static_cast<v1::PrioritySource>(99)) == "unknown");
  CHECK(Name(static_cast<v1::EventKind>(99)) == "unknown");
}

}  // namespace xschedd::ctl
