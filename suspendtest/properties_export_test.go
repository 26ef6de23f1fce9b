package suspendtest

import (
	"testing"
	"time"

	"github.com/braidgo/braid/suspendtest/internal/model"
)

// PropertiesOf is Properties for one Spec.
func PropertiesOf(tb testing.TB, spec model.Spec, open Open, patience time.Duration) {
	properties(tb, spec, open, propertiesOptions{patience: patience})
}
