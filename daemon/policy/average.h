// A mean and a variance that follow values one by one. Thread rule: pure function.
#pragma once

namespace xschedd::policy {

// `weight`: of the new value; 1 by the number of values makes it their mean, a constant a moving average.
inline void Average(float& mean, float& variance, float value, float weight) {
  const float away = value - mean;
  mean += weight * away;
  variance += weight * (away * (value - mean) - variance);
}

}  // namespace xschedd::policy
