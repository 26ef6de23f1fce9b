package main

import (
	"context"

	"github.com/graphql-go/graphql"

	"github.com/braidgo/braid/fetch"
)

// The executor of graphql-go/graphql collects thunks and calls them level by level. Each resolver returns a thunk from fetch.Later, so that
// the requests of one level are batched exactly.

// later returns a resolver that calls f with the id of the resolved object.
func later[V any](id func(source any) int, f func(ctx context.Context, id int) (V, error)) graphql.FieldResolveFn {
	return func(p graphql.ResolveParams) (any, error) {
		return fetch.Later(p.Context, func(ctx context.Context) (any, error) { return f(ctx, id(p.Source)) }), nil
	}
}

// naive returns a resolver that loads each key immediately, without batches.
func naive[V any](id func(source any) int, f func(ctx context.Context, ids []int) ([]V, error)) graphql.FieldResolveFn {
	return func(p graphql.ResolveParams) (any, error) {
		vs, err := f(p.Context, []int{id(p.Source)})
		if err != nil {
			return nil, err
		}
		return vs[0], nil
	}
}

func itself(source any) int   { return source.(int) }
func authorOf(source any) int { return source.(Post).Author }

// schema builds the schema. Its arguments are the three resolvers that query the database.
func schema(name, posts, author graphql.FieldResolveFn) (graphql.Schema, error) {
	authorType := graphql.NewObject(graphql.ObjectConfig{Name: "Author", Fields: graphql.Fields{
		"name": {Type: graphql.String, Resolve: func(p graphql.ResolveParams) (any, error) { return p.Source, nil }},
	}})
	postType := graphql.NewObject(graphql.ObjectConfig{Name: "Post", Fields: graphql.Fields{
		"title":  {Type: graphql.String, Resolve: func(p graphql.ResolveParams) (any, error) { return p.Source.(Post).Title, nil }},
		"author": {Type: authorType, Resolve: author},
	}})
	userType := graphql.NewObject(graphql.ObjectConfig{Name: "User", Fields: graphql.Fields{
		"name":  {Type: graphql.String, Resolve: name},
		"posts": {Type: graphql.NewList(postType), Resolve: posts},
	}})
	return graphql.NewSchema(graphql.SchemaConfig{Query: graphql.NewObject(graphql.ObjectConfig{Name: "Query", Fields: graphql.Fields{
		"users": {Type: graphql.NewList(userType), Resolve: func(graphql.ResolveParams) (any, error) { return userIDs(), nil }},
	}})})
}

// execute returns an answerer that executes queries against a schema.
func execute(s graphql.Schema) answerer {
	return func(ctx context.Context, query string) any {
		return graphql.Do(graphql.Params{Schema: s, RequestString: query, Context: ctx})
	}
}
