// Package plugin has braidvet's analyzers as a module plugin of golangci-lint. In .custom-gcl.yml:
//
//	version: v2.15.0
//	plugins:
//	  - module: github.com/braidgo/braid/braidvet
//	    import: github.com/braidgo/braid/braidvet/plugin
//	    version: latest
//
// and in .golangci.yml:
//
//	version: "2"
//	linters:
//	  enable: [braidvet]
//	  settings:
//	    custom:
//	      braidvet:
//	        type: module
//
// Then golangci-lint custom builds a golangci-lint that has the analyzers.
package plugin

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/braidgo/braid/braidvet"
)

func init() {
	register.Plugin("braidvet", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return braidvet.All(), nil }
func (plugin) GetLoadMode() string                           { return register.LoadModeTypesInfo }
