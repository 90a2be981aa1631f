"""Pages for administrators: members and groups."""

from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from bookings.models import Booking
from lanes import clock
from lanes.refusals import Refusal
from slotserve.groups import delete_group, save_group
from slotserve.groups import groups as all_groups
from slotserve.member_list import members
from slotserve.members import Removed, remove_member, save_member
from slotserve.web.access import staff_required
from slotserve.web.answers import kept_query, member, say
from slotserve.web.member_forms import GroupForm, MemberForm, SearchForm

ON_A_PAGE = 50


@staff_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Everybody, or those that are looked for."""
    form = SearchForm(request.GET)
    asked = form.cleaned_data if form.is_valid() else {}
    found = Paginator(members(asked.get("q", ""), asked.get("group")), ON_A_PAGE)
    part = found.get_page(request.GET.get("page"))
    context = {"form": form, "page": part, "query": kept_query(request)}
    return render(request, "members.html", context)


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """One member: the form, what she holds, and how to remove her."""
    person = get_object_or_404(members(), pk=pk)
    form = MemberForm(request.POST or None, person=person)
    if form.is_valid():
        wish, groups = form.wish()
        saved = save_member(person, wish, groups, actor=member(request))
        if not isinstance(saved, Refusal):
            messages.success(request, _("%(name)s is saved.") % {"name": saved.username})
            return redirect("members")
        form.add_error(None, saved.words)
    current = Booking.objects.filter(owner=person).current(clock.database_now())
    bookings = current.select_related("lane", "preset")
    context = {"form": form, "person": person, "bookings": bookings}
    return render(request, "member.html", context, status=400 if form.errors else 200)


@staff_required
@require_POST
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Let somebody in no more."""
    person = get_object_or_404(User, pk=pk)
    releases = "release" in request.POST
    done = remove_member(person, actor=member(request), releases=releases)
    say(request, done, _words(person, done) if isinstance(done, Removed) else "")
    return redirect("edit-member", pk) if isinstance(done, Refusal) else redirect("members")


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def groups(request: HttpRequest) -> HttpResponse:
    """All groups, and a form for another."""
    form = GroupForm(request.POST or None)
    if form.is_valid():
        made = save_group(None, form.cleaned_data["name"], actor=member(request))
        if not isinstance(made, Refusal):
            messages.success(request, _("%(name)s is saved.") % {"name": made.name})
            return redirect("groups")
        form.add_error(None, made.words)
    return _groups_page(request, form, status=400 if form.errors else 200)


@staff_required
@require_http_methods(["GET", "HEAD", "POST"])
def rename_group(request: HttpRequest, pk: int) -> HttpResponse:
    """Another name for a group; refused, the page shows what was typed."""
    if request.method != "POST":  # somebody reloads the address of a refusal
        return redirect("groups")
    group = get_object_or_404(Group, pk=pk)
    form = GroupForm(request.POST)
    if form.is_valid():
        saved = save_group(group, form.cleaned_data["name"], actor=member(request))
        if not isinstance(saved, Refusal):
            messages.success(request, _("%(name)s is saved.") % {"name": saved.name})
            return redirect("groups")
        form.add_error("name", saved.words)
    messages.error(request, " ".join(map(str, form.errors["name"])))
    typed = {"refused": pk, "typed": request.POST.get("name", "")}
    return _groups_page(request, GroupForm(), status=400, **typed)


@staff_required
@require_POST
def remove_group(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a group; its members stay."""
    group = get_object_or_404(Group, pk=pk)
    refusal = delete_group(group, actor=member(request))
    say(request, refusal, _("%(name)s is deleted.") % {"name": group.name})
    return redirect("groups")


def _groups_page(
    request: HttpRequest, form: GroupForm, *, status: int, **typed: object
) -> HttpResponse:
    context = {"form": form, "groups": all_groups(), **typed}
    return render(request, "groups.html", context, status=status)


def _words(person: User, done: Removed) -> str:
    words = [_("%(name)s is removed: log-in, sessions and tokens have ended.")]
    if done.given_back:
        words.append(
            ngettext(
                "%(count)d booking was given back.",
                "%(count)d bookings were given back.",
                done.given_back,
            )
        )
    if done.kept:
        words.append(ngettext("%(kept)d booking goes on.", "%(kept)d bookings go on.", done.kept))
    values = {"name": person.username, "count": done.given_back, "kept": done.kept}
    return " ".join(words) % values
