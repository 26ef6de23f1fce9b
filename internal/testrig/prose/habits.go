package prose

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// Habits are five ways of leaving out the noun of a sentence, or of making code a person. Package context has them in 0.7 % of the sentences of
// its comments, and package runtime in 1.8 %.
var Habits = []Pattern{
	{Name: "a pronoun for a noun", expr: regexp.MustCompile(`(?i)\b(that of|those (of|with|that|which|in|on)|one (that|which)|ones)\b`)},
	{Name: "the one, the others", expr: regexp.MustCompile(`(?i)\b(the one|one of (them|these|those|both)|the others|of both|of its own|of their own)\b`)},
	{Name: "likewise, meanwhile", expr: regexp.MustCompile(`(?i)\b(likewise|as well|meanwhile|some day|all the same|at a time|as before)\b`)},
	{Name: "has come, has gone", expr: regexp.MustCompile(`(?i)\b(has|have|had) (come|gone|told|met|left)\b`)},
	{Name: "code as a person", expr: regexp.MustCompile(`(?i)\b(knows?|tells?|told|asks|owes?|hears?|finds? out|stands?)\b`)},
}

// purpose finds what would go wrong otherwise.
var purpose = regexp.MustCompile(`(?i)\b(so that|avoids?|prevents?|ensures?|otherwise|but|however|note that|must|instead)\b`)

// fragment finds a comment behind code that is neither a clause nor a unit.
var fragment = regexp.MustCompile(`^(of|that|those|to|also|and|but|by|with|as|in|at|on|for|from|which|whose|who|what|or|if|until|since|else|nor|the one|not)\b|^(nil|0)(:|,| if| when| until| unless)`)

// tails adds the comments behind code.
func (s *Score) tails(file string, files *token.FileSet, f *ast.File, src []byte) {
	for _, group := range f.Comments {
		at := files.Position(group.Pos())
		lineStart := at.Offset - at.Column + 1
		if strings.TrimSpace(string(src[lineStart:at.Offset])) == "" {
			continue
		}
		text := strings.TrimSpace(group.Text())
		if text == "" {
			continue
		}
		s.Tails++
		if fragment.MatchString(text) {
			s.Fragments = append(s.Fragments, Hit{file, at.Line, text, "a fragment behind code"})
		}
	}
}
