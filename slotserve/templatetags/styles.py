"""`styled`: forms that others wrote, in the product's looks."""

from django import forms, template

from slotserve.web.fields import class_of

register = template.Library()


@register.filter
def styled(form: forms.BaseForm) -> forms.BaseForm:
    """The form with its widgets' classes; placeholders that only say the label again go."""
    for field in form.fields.values():
        field.widget.attrs.setdefault("class", class_of(field.widget))
        field.widget.attrs.pop("placeholder", None)
    return form
