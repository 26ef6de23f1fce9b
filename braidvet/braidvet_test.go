package braidvet

import (
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// Each folder of testdata has wrong functions, with the expected reports, and correct functions.
func TestAnalyzers(t *testing.T) {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for folder, a := range map[string]*analysis.Analyzer{
		"ignored": ignoredError, "stops": lostStop, "native": nativeWait, "nosuspend": noSuspend, "next": lostNext, "shared": sharedValue, "foreign": foreignContext, "rounds": sequentialGets,
	} {
		t.Run(folder, func(t *testing.T) {
			if folder == "foreign" || folder == "rounds" {
				analysistest.RunWithSuggestedFixes(t, dir, a, "./"+folder)
			} else {
				analysistest.Run(t, dir, a, "./"+folder)
			}
		})
	}
}
