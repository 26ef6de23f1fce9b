// Package prose measures how plain the English of comments and documents is.
//
// Six patterns match the habits that CONTRIBUTING.md rules out. The percentage of matches is a lower bound, because a sentence without a
// match may still be hard to read. In the comments of packages context and iter, no sentence matches.
package prose

import (
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
)

// A Pattern is a habit of writing, and the regular expression that matches sentences with this habit.
type Pattern struct {
	Name string
	expr *regexp.Regexp
	not  *regexp.Regexp // matches of plain English, which are not counted; may be nil
}

// Patterns contains the six habits that CONTRIBUTING.md limits.
var Patterns = []Pattern{
	{Name: "who as a subject", expr: regexp.MustCompile(`\bwho(ever|m)?\b|^Who(ever|m)?\b`)},
	{Name: "what as a subject", expr: regexp.MustCompile(`(?i)(^|[.;:,(] ?|\b(and|but|that|because|so|if|when|since|where) )what (is|was|has|it|they|the|a|comes|there|becomes|of|waits|can|may|must|else|to|one|each|other)\b`)},
	{
		Name: "has something done",
		expr: regexp.MustCompile(`(?i)\b(has|have|had) (\w+ ){1,6}?(fetched|called|run|made|told|resumed|looked|sleep|begin|refused|checked)\b`),
		not:  regexp.MustCompile(`(?i)\b(has|have|had) (been|not|never|neither|already|just|ever|since|now|only|also|to)\b`),
	},
	{Name: "Of in front", expr: regexp.MustCompile(`(^|[.;:] )Of [^,.]{2,60},`)},
	{
		Name: "old phrase",
		expr: regexp.MustCompile(`(?i)\b(so many|so much|(\w+ )?as many( \w+ as)?|of late|for ever|be it|but for|in vain|some time|lest|affair)\b`),
		not:  regexp.MustCompile(`(?i)(as many \w+ as|times as many)`),
	},
	{Name: "that as a pronoun", expr: regexp.MustCompile(`(?i)\b(if|of|than|and|as|by|with) that( (of|is|was|has|with|which)\b|[.,;:)]|$)`)},
}

// A Hit is a sentence that matches a pattern.
type Hit struct {
	File     string
	Line     int // the first line of the comment or paragraph
	Sentence string
	Pattern  string
}

// A Score counts the sentences of a set of files, and lists the sentences that match.
type Score struct {
	Sentences int
	Hits      []Hit
	Habits    []Hit
	Purposes  int // the number of sentences that say what would otherwise go wrong
	Tails     int // the number of comments behind code
	Fragments []Hit
}

// Add adds the sentences of o.
func (s *Score) Add(o *Score) {
	s.Sentences += o.Sentences
	s.Hits = append(s.Hits, o.Hits...)
	s.Habits = append(s.Habits, o.Habits...)
	s.Purposes += o.Purposes
	s.Tails += o.Tails
	s.Fragments = append(s.Fragments, o.Fragments...)
}

// Percent returns the percentage of sentences that match a pattern in Patterns.
func (s *Score) Percent() float64 {
	if s.Sentences == 0 {
		return 0
	}
	return 100 * float64(len(s.Hits)) / float64(s.Sentences)
}

// Go adds the comments of a Go file to the score.
func (s *Score) Go(file string) error {
	files := token.NewFileSet()
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(files, file, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		if f.Package > group.End() && strings.Contains(group.Text(), "Code generated") {
			return nil
		}
		s.text(file, files.Position(group.Pos()).Line, group.Text())
	}
	s.tails(file, files, f, src)
	return nil
}

// Markdown adds the prose of a document to the score. It skips code, but adds each table cell as a separate text.
func (s *Score) Markdown(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	code := false
	var at int
	var paragraph []string
	flush := func() {
		s.text(file, at, strings.Join(paragraph, "\n"))
		paragraph = nil
	}
	for i, line := range strings.Split(string(b), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			flush()
			code = !code
			continue
		case code:
			continue
		case trimmed == "", strings.HasPrefix(line, "    ") && len(paragraph) == 0:
			flush()
			continue
		case strings.HasPrefix(trimmed, "|"):
			flush()
			for cell := range strings.SplitSeq(strings.Trim(trimmed, "|"), " | ") {
				if len(strings.Fields(cell)) > 2 {
					s.text(file, i+1, cell)
				}
			}
			continue
		case strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "- "), strings.HasPrefix(trimmed, "* "):
			flush()
		}
		if paragraph == nil {
			at = i + 1
		}
		paragraph = append(paragraph, strings.TrimLeft(trimmed, "#-* "))
	}
	flush()
	return nil
}

var (
	diagram = regexp.MustCompile(`-[A-Z]+>|──|-->|^\s*[|│]`)
	end     = regexp.MustCompile(`[.!?:;]["')\]]*\s+`)
	quoted  = regexp.MustCompile("`[^`]*`|\"[^\"]*\"")
)

// text adds the sentences of a text to the score. It skips indented lines, which are code, and lines with an arrow, which belong to a
// diagram.
func (s *Score) text(file string, line int, text string) {
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(l, "\t") || strings.HasPrefix(l, "    ") || diagram.MatchString(l) {
			l = ""
		}
		lines = append(lines, l)
	}
	for paragraph := range strings.SplitSeq(strings.Join(lines, "\n"), "\n\n") {
		plain := quoted.ReplaceAllString(strings.Join(strings.Fields(paragraph), " "), "X")
		for _, sentence := range end.Split(plain, -1) {
			if len(strings.Fields(sentence)) < 2 {
				continue
			}
			s.Sentences++
			for _, p := range Habits {
				if p.expr.MatchString(sentence) {
					s.Habits = append(s.Habits, Hit{file, line, sentence, p.Name})
					break
				}
			}
			if purpose.MatchString(sentence) {
				s.Purposes++
			}
			for _, p := range Patterns {
				m := p.expr.FindString(sentence)
				if m == "" || p.not != nil && p.not.MatchString(m) {
					continue
				}
				s.Hits = append(s.Hits, Hit{file, line, sentence, p.Name})
				break
			}
		}
	}
}
