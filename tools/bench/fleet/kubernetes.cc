#include <algorithm>
#include <set>

#include "tools/bench/fleet/engine.h"

namespace xschedd::fleet {
namespace {

// Pods that ask for the same. Where one does not fit, none does.
struct Shape {
  Demand demand;
  std::set<Waiting> pods;
  bool fails = false;  // and nothing has ended since
};

class Kubernetes : public Engine {
 public:
  explicit Kubernetes(Inventory::NodeOrder order) : order_(order) {}

  void Submit(const Waiting& job) override {
    auto shape = std::find_if(shapes_.begin(), shapes_.end(), [&](const Shape& s) { return s.demand == job.demand; });
    if (shape == shapes_.end()) shape = shapes_.insert(shape, Shape{.demand = job.demand, .pods = {}});
    shape->pods.insert(job);
  }

  void End(std::uint32_t) override {
    for (Shape& shape : shapes_)
      shape.fails = false;
  }

  void Pass(double, const Inventory& inventory, const Start& start) override {
    while (Shape* shape = Next()) {
      const auto place = inventory.Find(shape->demand, order_, Inventory::GpuOrder::kLeastAllocated);
      if (!place) {
        shape->fails = true;
        continue;
      }
      const Waiting pod = *shape->pods.begin();
      shape->pods.erase(shape->pods.begin());
      start(pod, *place);
    }
  }

  double NextPassS() const override { return kNever; }

 private:
  // With the first of all pods that may fit; nullptr: there is none.
  Shape* Next() {
    Shape* best = nullptr;
    for (Shape& shape : shapes_) {
      if (shape.fails || shape.pods.empty()) continue;
      if (best == nullptr || *shape.pods.begin() < *best->pods.begin()) best = &shape;
    }
    return best;
  }

  Inventory::NodeOrder order_;
  std::vector<Shape> shapes_;
};

}  // namespace

std::unique_ptr<Engine> MakeKubernetes(Placing placing) {
  return std::make_unique<Kubernetes>(placing == Placing::kPack ? Inventory::NodeOrder::kMostAllocated
                                                                : Inventory::NodeOrder::kLeastAllocated);
}

std::unique_ptr<Engine> MakeEngine(EngineKind kind, Placing placing) {
  return kind == EngineKind::kSlurm ? MakeSlurm(placing) : MakeKubernetes(placing);
}

}  // namespace xschedd::fleet
