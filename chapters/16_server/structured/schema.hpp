// A grammar from a JSON schema, by which a client says what an answer must look like.
//
//   {"type": "object", "required": ["name"],
//    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
//
// Supported keywords: type (also a list of types), properties with required and
// additionalProperties false, items, minItems, maxItems, minLength, maxLength, enum, const, anyOf,
// and $ref to a part of the same schema, such as one of its $defs; {} and true allow any value. A
// keyword must stand with its type: minItems with "type": "array". title, description, default,
// examples, $schema and $comment are ignored. All other keywords are refused, since an answer that
// ignores a part of its schema is worse than none; so is a recursive schema.
//
// Each text of the grammar obeys the schema. The grammar allows less than the schema: an object has
// its properties in the schema's order, and no others; an integer has no point; enum and const are
// written in one way, without blanks. The alternatives of anyOf must differ in their first bytes,
// so that one byte decides.
#pragma once

#include <string_view>

#include "16_server/structured/json_grammar.hpp"

namespace t2t {

/// Throws std::invalid_argument, with the keyword's path, for a text that is not JSON, for what the
/// grammar can't express, and for a schema that no value obeys.
JsonGrammar schema_grammar(std::string_view schema);

}  // namespace t2t
