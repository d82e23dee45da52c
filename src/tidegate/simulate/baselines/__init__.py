"""What others do, faithfully enough to be measured against: one front for each rule."""
