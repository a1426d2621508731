// Fields of forms, made from the parameters of a call as /v1/openapi.json describes them: their words, limits and roles.
//     const parameters = session.parameters("post", "/inspect");
//     parameters.map((one) => field(session, "inspect", one, {seconds: 300}[one.name]))       values of Object.fromEntries(new FormData(form))
// The id of the input is that of the view with the parameter's name: inspect-seconds.

import {el} from "./element.js";

export const sentence = (words) => words[0].toUpperCase() + words.slice(1);

function kind({schema}, value) {
    if (schema.enum) return {type: "checkbox", value: schema.enum[0]};
    if (schema.type === "integer") return {type: "number", min: schema.minimum, max: schema.maximum, value};
    return {type: "text", autocomplete: "off", value};
}

export function field(session, view, parameter, value) {
    const id = `${view}-${parameter.name}`, role = parameter["x-role"], able = session.may(role);
    return el("div", null, el("label", {for: id}, el("span", null, sentence(parameter.description))),
        el("input", {id, name: parameter.name, disabled: !able, title: able ? undefined : `This needs the role ${role}.`, ...kind(parameter, value)}));
}
